"""Damaged store files are detected, and reported with the command that restores them."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import fsspec
import pytest

import hta_sql
import hta_sql.store.maintenance.edits
from hta_sql.store.catalog.build import build_catalog
from hta_sql.store.catalog.materialize import materialize_answers
from hta_sql.store.disk import checksums
from hta_sql.store.disk.digests import file_digest
from hta_sql.store.disk.file_checks import size_faults
from hta_sql.store.disk.manifest import CATALOG, MANIFEST, read_manifest
from hta_sql.store.maintenance.verify import verify_store
from tests.manifests import write_manifest
from tests.safety import damages
from tests.safety.damages import Answers, answers, make_store, restore
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from hta_sql.store.disk.file_checks import Expected, Fault
    from hta_sql.store.disk.folder import StoreFolder
    from tests.cli.conftest import Cli


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Answers]:
    """Create a store; return its path, its backup and its answers."""
    folder = tmp_path_factory.mktemp("damaged")
    store = make_store(folder)
    whole = answers(store)
    shutil.copytree(store, folder / "backup")
    return store, folder / "backup", whole


@pytest.fixture
def store(made: tuple[Path, Path, Answers]) -> Iterator[Path]:
    """Restore the store, which has runs ``first`` and ``second`` with two ranks each."""
    restore(made[0], made[1])
    yield made[0]
    restore(made[0], made[1])


def file_of(store: Path, run: str, rank: int, table: str = "gpu_ops") -> Path:
    """Return the Parquet file of a rank."""
    (entry,) = (e for e in read_manifest(store).entries if (e.run, e.rank) == (run, rank))
    return Path(store, entry.files[table]["path"])


def changed(path: Path, content: bytes) -> None:
    """Replace a file without changing hard links to it."""
    path.unlink()
    path.write_bytes(content)


def flipped(path: Path, at: int) -> None:
    """Flip the lowest bit of a byte in a file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    changed(path, bytes(content))


def test_a_store_that_is_whole(store: Path, cli: Cli) -> None:
    """``verify`` finds no faults in an intact store, changes no file, and exits with code 0."""
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}
    done = cli("verify", store, "--deep", "--format", "json")
    told = json.loads(done.out)
    assert (done.code, told["is_sound"], told["faults"]) == (0, True, [])
    assert told["files"] > 20
    assert before == {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}


def test_a_flipped_bit_in_parquet(store: Path, cli: Cli, made: tuple[Path, Path, Answers]) -> None:
    """A flipped bit is found, and ingesting the traces again restores all answers."""
    flipped(file_of(store, "first", 1), 400)
    done = cli("verify", store)
    assert done.code == 1
    assert "(run first rank 1): its checksum does not match the manifest" in done.out
    assert f"hta-sql ingest TRACES -o {store} --run first --force" in done.err
    ingest_only(store.parent / "first", store, jobs=1, force=True)
    assert answers(store) == made[2]
    assert cli("verify", store).code == 0


def test_repair_is_an_alias_that_names_the_commands(store: Path, cli: Cli) -> None:
    """``repair`` changes nothing, and prints the command for each kind of damage."""
    flipped(file_of(store, "first", 1), 400)
    flipped(materialized(store, "temporal_breakdown", "second"), 400)
    (shard,) = store.glob("shards/*.json")
    flipped(shard, shard.read_bytes().index(b'"event_count": ') + 15)
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}
    done = cli("repair", store)
    assert done.code == 1
    for said in (
        "is an alias of hta-sql verify; ingest --force restores a damaged run",
        f"hta-sql ingest TRACES -o {store} --run first --force",
        f"hta-sql materialize {store}",
        "Run the job of the shard again",
    ):
        assert said in done.err
    assert before == {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}


def test_a_flipped_bit_in_the_manifest(store: Path, cli: Cli) -> None:
    """A manifest with a flipped bit is not used, and its error names the remedy."""
    text = (store / MANIFEST).read_bytes()
    flipped(store / MANIFEST, text.rindex(b'"event_count": ') + len(b'"event_count": '))
    done = cli("sql", store, "FROM runs")
    assert (done.code, done.out) == (1, "")
    assert "is damaged: its content does not match its checksum" in done.err
    assert "into a new store: hta-sql ingest TRACES -o STORE" in done.err
    done = cli("verify", store)
    assert done.code == 1
    assert "into a new store: hta-sql ingest TRACES -o STORE" in done.err


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 200_000])
def test_a_manifest_that_is_no_json(store: Path, content: bytes) -> None:
    """A store whose manifest is not valid JSON is reported as damaged, with the remedy."""
    changed(store / MANIFEST, content)
    with pytest.raises(hta_sql.StoreDamagedError, match=r"hta-sql ingest TRACES"):
        hta_sql.open(store)


def test_a_manifest_that_is_gone(store: Path) -> None:
    """A missing manifest is reported with the remedy. Without the catalog, there is no store."""
    (store / MANIFEST).unlink()
    with pytest.raises(hta_sql.StoreNotFoundError, match=r"hta-sql ingest TRACES"):
        hta_sql.open(store)
    assert [fault.kind for fault in verify_store(store).faults] == ["manifest"]
    (store / CATALOG).unlink()
    with pytest.raises(hta_sql.StoreNotFoundError):
        verify_store(store)


def test_a_file_over_that_of_another_rank(store: Path) -> None:
    """A file overwritten with that of a different rank is found, even if the sizes are equal."""
    changed(file_of(store, "first", 1), file_of(store, "first", 0).read_bytes())
    (fault,) = verify_store(store).faults
    assert (fault.run, fault.ranks) == ("first", (1,))
    assert fault.kind in ("content", "size")


def test_another_size_is_noticed_when_it_is_opened(
    store: Path, caplog: pytest.LogCaptureFixture, made: tuple[Path, Path, Answers]
) -> None:
    """If a valid Parquet file has the wrong size, its run is omitted when the store is opened."""
    longer = Path(f"{file_of(store, 'second', 1)}")
    changed(longer, file_of(store, "second", 1, "runtime_calls").read_bytes())
    with hta_sql.open(store) as opened:
        assert opened.sql("SELECT DISTINCT run FROM ranks").rows() == [("first",)]
    assert "omitted runs with missing or corrupt Parquet files" in caplog.text
    assert longer.name in caplog.text
    assert f"hta-sql ingest TRACES -o {store} --run second --force" in caplog.text
    assert answers(store) == {"first": made[2]["first"]}


@pytest.mark.parametrize("content", [b"", None])
def test_a_store_that_stays_open_has_what_was_restored(
    store: Path, made: tuple[Path, Path, Answers], content: bytes | None
) -> None:
    """A store that stays open returns a run that was ingested again."""
    path = file_of(store, "first", 1)
    changed(path, content if content is not None else bytes(len(path.read_bytes())))
    query = "SELECT DISTINCT run FROM gpu_ops ORDER BY run"
    with hta_sql.open(store) as opened:
        if content is None:
            for _ in range(2):
                with pytest.raises(hta_sql.StoreDamagedError, match=path.name):
                    opened.sql(query)
        else:
            assert opened.sql(query).rows() == [("second",)]
        ingest_only(store.parent / "first", store, jobs=1, force=True)
        hta_sql.remove_runs(store, "second")
        assert opened.sql(query).rows() == [("first",)]
    assert answers(store) == {"first": made[2]["first"]}


def test_a_catalog_that_was_replaced_is_closed(store: Path) -> None:
    """A replaced catalog is closed after its last query to free tens of MB of memory."""
    with hta_sql.open(store) as opened:
        connection_of = opened._connection
        query = "SELECT DISTINCT run FROM gpu_ops ORDER BY run"
        held: list[int] = []

        def while_one_asks(con: duckdb.DuckDBPyConnection) -> int:
            file_of(store, "first", 1).unlink()
            assert opened.sql(query).rows() == [("second",)]
            held.append(len(connection_of._replaced))
            return len(con.execute("SELECT 1").fetchall())

        assert connection_of.run(while_one_asks) == 1
        assert held == [1]
        assert connection_of._replaced == []
        assert opened.sql(query).rows() == [("second",)]


def test_what_others_replace_meanwhile_is_not_lost(
    store: Path, made: tuple[Path, Path, Answers], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that an ingest replaces while a reader checks their sizes do not count as lost."""
    looked: list[int] = []

    def look(folder: StoreFolder, files: Collection[Expected]) -> list[Fault]:
        looked.append(1)
        if len(looked) == 1:
            for _ in range(2):
                ingest_only(store.parent / "first", store, force=True, jobs=1)
        return size_faults(folder, files)

    monkeypatch.setattr("hta_sql.store.query.open_catalog.size_faults", look)
    assert answers(store) == made[2]
    assert len(looked) > 1


def test_an_answer_that_is_kept_in_a_file_of_another_size(
    store: Path, made: tuple[Path, Path, Answers]
) -> None:
    """A materialized answer whose file has the wrong size is recomputed."""
    first, second = (
        store / one.path
        for one in read_manifest(store).materialized
        if one.path and one.run == "first" and one.table in damages.QUESTIONS
    )
    changed(first, second.read_bytes())
    assert answers(store) == made[2]


@pytest.mark.parametrize("what", ["gone", "cut off"])
def test_an_ingest_reads_again_what_is_not_there(
    store: Path, what: str, made: tuple[Path, Path, Answers]
) -> None:
    """A rank with missing files does not count as unchanged, and is read again."""
    path = file_of(store, "first", 1)
    content = path.read_bytes()
    path.unlink()
    if what == "cut off":
        path.write_bytes(content[:-100])
    with hta_sql.ingest(store.parent / "first", store, jobs=1) as opened:
        assert opened.ingested
        assert [entry.rank for entry in opened.ingested.unchanged] == [0]
        assert [entry.rank for entry in opened.ingested.results] == [1]
    assert answers(store) == made[2]


def test_a_damaged_catalog_names_the_command(store: Path, cli: Cli) -> None:
    """The error for a damaged block of the catalog contains the command that rebuilds it."""
    with hta_sql.open(store) as opened:

        def stumbles(_: duckdb.DuckDBPyConnection) -> None:
            raise duckdb.Error("Corrupt database file: computed checksum 1 does not match 2")

        with pytest.raises(hta_sql.StoreDamagedError, match=rf"hta-sql catalog {store}"):
            opened._connection.run(stumbles)
    blocks = bytearray((store / CATALOG).read_bytes())
    blocks[len(blocks) // 4 :] = bytes(len(blocks[len(blocks) // 4 :]))
    changed(store / CATALOG, bytes(blocks))
    assert [fault.kind for fault in verify_store(store).faults] == ["catalog"]
    assert cli("catalog", store).code == 0
    assert verify_store(store).faults == []


def test_a_catalog_that_says_something_else(store: Path) -> None:
    """``verify`` finds a view that reads the wrong table, although the catalog file is valid."""
    with duckdb.connect(str(store / CATALOG)) as con:
        con.execute("CREATE OR REPLACE VIEW stored.flows AS FROM stored.counters")
    (fault,) = verify_store(store).faults
    assert (fault.kind, fault.message) == ("catalog", "its contents do not match the manifest")


def test_a_damaged_run_without_traces_can_be_removed(
    store: Path, made: tuple[Path, Path, Answers]
) -> None:
    """A damaged run whose traces are gone is removed, and the other run is complete."""
    path = file_of(store, "first", 1)
    flipped(path, 400)
    with pytest.raises(hta_sql.StoreDamagedError, match=f"hta-sql runs remove {store} first"):
        answers(store)
    hta_sql.store.maintenance.edits.remove_runs(store, "first")
    assert answers(store) == {"second": made[2]["second"]}


def test_a_damaged_shard_blocks_nobody(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A damaged shard is skipped with a warning, and its job can run again."""
    (shard,) = store.glob("shards/*.json")
    flipped(shard, shard.read_bytes().index(b'"event_count": ') + 15)
    ingest_only(store.parent / "first", store, jobs=1, force=True)
    assert "run its job again" in caplog.text
    assert [fault.kind for fault in verify_store(store).faults] == ["shard"]
    for number in (1, 2):
        hta_sql.ingest_shard(store.parent / "third", store, shard=(number, 2), jobs=1)
    hta_sql.publish(store, expect=2).close()
    assert "third" in answers(store)


def test_links_that_lead_nowhere(store: Path) -> None:
    """Only a deep verify finds ids that refer to missing events, as all checksums match."""
    path = file_of(store, "first", 0)
    with duckdb.connect() as con:
        rows = con.read_parquet(str(path), hive_partitioning=False)
        rows.project("* REPLACE (launch_id + 100 AS launch_id)").write_parquet(f"{path}.new")
    changed(path, Path(f"{path}.new").read_bytes())
    write_manifest(store, json.loads((store / MANIFEST).read_text()))
    build_catalog(store)
    assert verify_store(store).faults == []
    (fault,) = verify_store(store, deep=True).faults
    assert fault.message == "launch_id refers to 2 missing events"


def test_a_share_of_random_damages(tmp_path: Path) -> None:
    """A damage of each kind of file gives equal answers, or a message that names the file."""
    told = damages.rounds(tmp_path, 24, 0)
    assert sum(told.values()) == 24


@pytest.mark.slow(reason="faults")
@pytest.mark.parametrize("seed", [1, 2])
def test_three_hundred_random_damages(tmp_path: Path, seed: int) -> None:
    """No random damage gives a wrong answer silently, and the other run can be queried."""
    told = damages.rounds(tmp_path, 300, seed)
    assert sum(told.values()) == 300


def materialized(store: Path, table: str, run: str) -> Path:
    """Return the file of a materialized table or answer of a run."""
    kept = read_manifest(store).materialized
    (path,) = (one.path for one in kept if (one.table, one.run) == (table, run))
    assert path
    return store / path


@pytest.mark.parametrize("runs", [None, ["first"]])
def test_a_flipped_bit_in_a_small_file_is_an_error_of_its_run(
    store: Path, made: tuple[Path, Path, Answers], runs: list[str] | None
) -> None:
    """The error names the file, its run and the remedy, whichever tables the query reads."""
    path = file_of(store, "first", 0, "flows")
    flipped(path, 4)
    said = rf"{path.name} \(run first rank 0\).* --run first --force"
    with hta_sql.open(store) as opened:
        for _ in range(2):
            with pytest.raises(hta_sql.StoreDamagedError, match=said):
                opened.run("temporal_breakdown", runs=runs)
            with pytest.raises(hta_sql.StoreDamagedError, match=said):
                opened.sql("FROM temporal_breakdown")
            rows = opened.run("temporal_breakdown", runs=["second"]).rows()
            told = [row for row in made[2]["second"] if row[0] == "FROM temporal_breakdown"]
            assert len(rows) == len(told)
        with pytest.raises(hta_sql.StoreDamagedError, match=said):
            opened.table("gpu_ops", runs=runs)


def test_a_changed_answer_is_computed_again(
    store: Path, made: tuple[Path, Path, Answers], caplog: pytest.LogCaptureFixture
) -> None:
    """A materialized answer that was changed is computed by queries until it is written again."""
    path = materialized(store, "temporal_breakdown", "first")
    flipped(path, 400)
    assert answers(store) == made[2]
    assert path.name in caplog.text
    assert f"hta-sql materialize {store}" in caplog.text
    materialize_answers(store, damages.QUESTIONS)
    assert verify_store(store).faults == []
    assert answers(store) == made[2]


def test_nothing_is_materialized_from_a_damaged_file(
    store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is materialized from a damaged file: the result would get a valid checksum."""
    path = file_of(store, "first", 0)
    flipped(path, 400)
    found = {one.run for one in materialize_answers(store, ["gpu_kernels_by_name"])}
    assert found <= {"second"}
    assert path.name in caplog.text


@pytest.mark.parametrize("table", ["gpu_ops", "flows"])
def test_a_damaged_file_blocks_neither_the_catalog_nor_an_ingest(
    store: Path, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The catalog leaves out a run with a corrupt footer, and another run can be ingested."""
    path = file_of(store, "first", 0, table)
    changed(path, bytes(len(path.read_bytes()) - 8) + path.read_bytes()[-8:])
    build_catalog(store)
    ingest_only(store.parent / "second", store, run="other", jobs=1)
    with hta_sql.open(store) as opened:
        for run in ("second", "other"):
            (count,) = opened.run("kernel_table", runs=[run]).arrow().column("run").unique()
            assert str(count) == run
    assert path.name in caplog.text


def test_contents_are_compared_once_per_process(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening hashes nothing; the first query of a process hashes each small file once.

    A file that changed since is hashed again.
    """
    compared: list[str] = []

    def digest(path: Path) -> str:
        compared.append(path.relative_to(store).as_posix())
        return file_digest(path)

    monkeypatch.setattr(checksums, "file_digest", digest)
    checksums._digest.cache_clear()
    with hta_sql.open(store):
        assert compared == []
    for _ in range(2):
        with hta_sql.open(store) as opened:
            opened.run("temporal_breakdown").rows()
            opened.table("flows", runs=["first"]).rows()
    assert sorted(compared) == sorted(read_manifest(store).named_files())
    path = file_of(store, "first", 0, "flows")
    changed(path, path.read_bytes())
    with hta_sql.open(store) as opened:
        opened.table("flows", runs=["first"]).rows()
    assert compared[len(read_manifest(store).named_files()) :] == [
        path.relative_to(store).as_posix()
    ]


def test_a_query_waits_for_the_hashes(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query whose rows are there before the hashes is refused as well."""
    path = file_of(store, "first", 0, "flows")
    flipped(path, 4)
    is_computed = threading.Event()

    def digest(path: Path) -> str:
        assert is_computed.wait(60)
        return file_digest(path)

    def question(con: duckdb.DuckDBPyConnection) -> int:
        ((count,),) = con.execute("SELECT count(*) FROM gpu_ops").fetchall()
        is_computed.set()
        return int(count)

    monkeypatch.setattr(checksums, "file_digest", digest)
    checksums._digest.cache_clear()
    with (
        hta_sql.open(store) as opened,
        pytest.raises(hta_sql.StoreDamagedError, match=path.name),
    ):
        opened._connection.run(question)


@pytest.mark.parametrize(("limit", "most"), [("SMALL_BYTES", 1), ("MOST_BYTES", 1)])
def test_large_files_and_large_stores_are_compared_with_verify_only(
    store: Path, cli: Cli, limit: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files and stores above the limits are hashed only if ``verify`` is requested."""
    monkeypatch.setattr(checksums, limit, most)
    path = file_of(store, "first", 0, "flows")
    flipped(path, 4)
    query = "SELECT count(*) FROM gpu_ops"
    with hta_sql.open(store) as opened:
        assert opened.sql(query).rows() == [(8,)]
    with (
        hta_sql.open(store, verify=True) as opened,
        pytest.raises(hta_sql.StoreDamagedError, match=path.name),
    ):
        opened.sql(query)
    done = cli("sql", store, query, "--verify", "--format", "csv")
    assert (done.code, path.name in done.err) == (1, True)


def test_verify_compares_objects_of_an_object_storage(store: Path) -> None:
    """``verify`` also compares checksums in object storage, which costs additional requests."""
    memory = fsspec.filesystem("memory")
    path = file_of(store, "first", 0, "flows")
    flipped(path, 4)
    for file in store.rglob("*"):
        if file.is_file():
            memory.pipe_file(f"/damaged/{file.relative_to(store).as_posix()}", file.read_bytes())
    with (
        hta_sql.open("memory://damaged", verify=True) as opened,
        pytest.raises(hta_sql.StoreDamagedError, match=path.name),
    ):
        opened.sql("SELECT DISTINCT run FROM flows")
