"""Damaged store files are detected, reported together with the repair command, and repaired."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import fsspec
import pytest

import hta_sql
import hta_sql.store.maintenance.edits
from hta_sql.api import repair_store
from hta_sql.ingestion.ingest import ingest_traces
from hta_sql.ingestion.options import IngestOptions
from hta_sql.store.catalog.build import build_catalog
from hta_sql.store.catalog.damage import unreadable_runs
from hta_sql.store.catalog.materialize import materialize_answers
from hta_sql.store.disk import content_check
from hta_sql.store.disk.integrity import file_digest
from hta_sql.store.disk.manifest import CATALOG, MANIFEST, Manifest, read_manifest
from hta_sql.store.maintenance.verify import verify_store
from hta_sql.store.query import connection
from tests.manifests import write_manifest
from tests.safety import damages
from tests.safety.damages import (
    Answers,
    answers,
    damage,
    every_row,
    is_right_or_named,
    make_store,
    restore,
    survives,
)
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """A flipped bit is found, and reading the rank again restores all answers."""
    flipped(file_of(store, "first", 1), 400)
    done = cli("verify", store)
    assert done.code == 1
    assert "(run first rank 1): its checksum does not match the manifest" in done.out
    assert f"hta-sql repair {store}" in done.err
    done = cli("repair", store)
    assert (done.code, "Re-read rank 1 of run first." in done.err) == (0, True)
    assert answers(store) == made[2]
    assert cli("verify", store).code == 0


def test_a_flipped_bit_in_the_manifest(
    store: Path, cli: Cli, made: tuple[Path, Path, Answers]
) -> None:
    """A manifest with a flipped bit is not used, and is restored from the catalog."""
    text = (store / MANIFEST).read_bytes()
    flipped(store / MANIFEST, text.rindex(b'"event_count": ') + len(b'"event_count": '))
    done = cli("sql", store, "FROM runs")
    assert (done.code, done.out) == (1, "")
    assert "is damaged: its content does not match its checksum" in done.err
    assert f"hta-sql repair {store}" in done.err
    assert cli("verify", store).code == 1
    assert cli("repair", store).code == 0
    assert answers(store) == made[2]


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 200_000])
def test_a_manifest_that_is_no_json(store: Path, content: bytes) -> None:
    """A store whose manifest is not valid JSON is reported as damaged, with the repair command."""
    changed(store / MANIFEST, content)
    with pytest.raises(hta_sql.StoreDamagedError, match=r"hta-sql repair"):
        hta_sql.open(store)


def test_a_manifest_that_is_gone(store: Path, made: tuple[Path, Path, Answers]) -> None:
    """A missing manifest is restored from the catalog. Without the catalog, there is no store."""
    (store / MANIFEST).unlink()
    with pytest.raises(hta_sql.StoreNotFoundError, match=r"hta-sql repair"):
        hta_sql.open(store)
    assert [fault.kind for fault in verify_store(store).faults] == ["manifest"]
    repair_store(store)
    assert answers(store) == made[2]
    (store / MANIFEST).unlink()
    (store / CATALOG).unlink()
    with pytest.raises(hta_sql.StoreNotFoundError):
        verify_store(store)
    with pytest.raises(hta_sql.StoreNotFoundError):
        repair_store(store)


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
    assert f"hta-sql repair {store}" in caplog.text
    assert answers(store) == {"first": made[2]["first"]}


def test_a_store_that_stays_open_has_what_was_repaired(
    store: Path, made: tuple[Path, Path, Answers]
) -> None:
    """A store that stays open during a repair returns the repaired run once it reopens itself."""
    changed(file_of(store, "first", 1), b"")
    with hta_sql.open(store) as opened:
        query = "SELECT DISTINCT run FROM gpu_ops ORDER BY run"
        assert opened.sql(query).rows() == [("second",)]
        repair_store(store)
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
            if not held:  # this runs again if a check of file sizes has replaced the catalog
                changed(file_of(store, "first", 1), b"")
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
    """Files that an ingest replaces while a reader looks for missing files do not count as lost."""
    file_of(store, "second", 1).unlink()
    looked: list[int] = []

    def look(error: duckdb.Error, manifest: Manifest, folder: StoreFolder) -> set[str]:
        looked.append(1)
        if len(looked) == 1:
            for _ in range(2):
                ingest_traces(IngestOptions(store.parent / "first", store, force=True, jobs=1))
        unnamed = duckdb.Error(str(error).replace(".parquet", ""))  # like a corrupt footer
        return unreadable_runs(unnamed, manifest, folder)

    monkeypatch.setattr(connection, "unreadable_runs", look)
    assert answers(store)["first"] == made[2]["first"]
    assert looked


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


def test_what_cannot_be_read_again_is_set_aside(
    store: Path, cli: Cli, made: tuple[Path, Path, Answers], caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged run whose trace is missing is quarantined until an ingest restores it."""
    flipped(file_of(store, "first", 1), 400)
    trace, hidden = store.parent / "first" / "rank1.json", store.parent / "hidden.json"
    trace.rename(hidden)
    try:
        done = cli("repair", store)
        assert done.code == 1
        assert "run first is quarantined: rank 1 is damaged, and its trace is missing" in done.err
        assert answers(store) == {"second": made[2]["second"]}
        assert "omitted runs" in caplog.text
        assert verify_store(store).faults == []
        assert cli("repair", store).code == 1
    finally:
        hidden.rename(trace)
    with hta_sql.ingest(trace.parent, store, jobs=1) as opened:
        assert opened.ingested
        assert [entry.rank for entry in opened.ingested.results] == [1]
    assert answers(store) == made[2]
    assert read_manifest(store).aside == []


def test_a_trace_that_has_changed_is_not_read_again(store: Path) -> None:
    """A repair quarantines a rank whose trace has changed since it was ingested."""
    flipped(file_of(store, "first", 0), 400)
    trace = store.parent / "first" / "rank0.json"
    content = trace.read_text()
    trace.write_text(content.replace("gemm", "other"))
    try:
        done = repair_store(store)
        assert list(done.aside) == [("first", 0)]
        assert "has changed" in done.aside["first", 0]
        hta_sql.open(store).close()
        hta_sql.store.maintenance.edits.remove_runs(store, "first")
        assert answers(store).keys() == {"second"}
    finally:
        trace.write_text(content)


def test_a_damaged_shard_blocks_nobody(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A damaged shard is skipped with a warning; after a repair, it can be ingested again."""
    (shard,) = store.glob("shards/*.json")
    flipped(shard, shard.read_bytes().index(b'"event_count": ') + 15)
    ingest_only(store.parent / "first", store, jobs=1, force=True)
    assert f"hta-sql repair {store}" in caplog.text
    assert [fault.kind for fault in verify_store(store).faults] == ["shard"]
    repair_store(store)
    assert verify_store(store).faults == []
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


@pytest.mark.parametrize(
    "seed",
    [  # the first few damage each kind of file once
        pytest.param(
            seed, marks=[pytest.mark.slow(reason="faults")] if seed >= len(damages.TARGETS) else []
        )
        for seed in range(24)
    ],
)
def test_a_random_damage(seed: int, store: Path, made: tuple[Path, Path, Answers]) -> None:
    """If ``verify`` finds no fault, all answers are right; otherwise the store can be repaired."""
    chance = random.Random(seed)
    ways, targets = damages.WAYS, damages.TARGETS
    at = seed + seed // len(targets)  # combines each kind of damage with each target
    what = damage(chance, store, ways[at % len(ways)], targets[seed % len(targets)])
    assert survives(store, made[2], has_sources=True, quick=True), what


@pytest.mark.slow(reason="faults")
def test_a_thousand_random_damages(tmp_path: Path) -> None:
    """No random damage causes a wrong answer, with or without the traces."""
    told = damages.rounds(tmp_path, 1000, 0)
    assert sum(told.values()) == 1000


def materialized(store: Path, table: str, run: str) -> Path:
    """Return the file of a materialized table or answer of a run."""
    kept = read_manifest(store).materialized
    (path,) = (one.path for one in kept if (one.table, one.run) == (table, run))
    assert path
    return store / path


def padded(content: bytes, size: int) -> bytes:
    """Pad a Parquet file to a given size before its footer, so that it remains valid."""
    footer = int.from_bytes(content[-8:-4], "little") + 8
    return content[:-footer] + bytes(size - len(content)) + content[-footer:]


@pytest.mark.parametrize(
    ("has_one_size", "is_large"), [(False, False), (True, False), (True, True)]
)
def test_exchanged_answers_of_two_runs_are_computed_again(
    store: Path,
    made: tuple[Path, Path, Answers],
    *,
    has_one_size: bool,
    is_large: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """If files of answers are exchanged, a checksum or the run in the footer reveals it."""
    files = [materialized(store, "temporal_breakdown", run) for run in ("first", "second")]
    whole = [path.read_bytes() for path in files]
    if has_one_size:
        whole = [padded(content, max(map(len, whole))) for content in whole]
        values = json.loads((store / MANIFEST).read_text())
        for path, content in zip(files, whole, strict=True):
            (kept,) = (
                one for one in values["materialized"] if one["path"] and path.match(one["path"])
            )
            kept |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            changed(path, content)
        write_manifest(store, values)
        assert answers(store) == made[2]
    for path, content in zip(files, reversed(whole), strict=True):
        changed(path, content)
    if is_large:
        monkeypatch.setattr(content_check, "SMALL_BYTES", 1)
    assert answers(store) == made[2]
    assert all(path.name in caplog.text for path in files)


@pytest.mark.parametrize("at", range(100, 1000, 300))
def test_a_flipped_bit_in_a_small_table_is_noticed_by_the_query_that_reads_it(
    store: Path, made: tuple[Path, Path, Answers], at: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Only queries that read the damaged table warn and omit the run; others return all runs."""
    path = file_of(store, "first", 0, "flows")
    flipped(path, at)
    with hta_sql.open(store) as opened:
        assert opened.sql("SELECT DISTINCT run FROM gpu_ops ORDER BY run").rows() == [
            ("first",),
            ("second",),
        ]
        assert path.name not in caplog.text
        assert opened.sql("SELECT DISTINCT run FROM Flows").rows() == [("second",)]
    assert path.name in caplog.text
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


def test_contents_are_compared_once_and_only_of_what_a_query_reads(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checksums are only compared for the files that a query reads, and once for each file.

    A file that changed since is compared again.
    """
    compared: list[str] = []

    def digest(path: Path) -> str:
        compared.append(path.relative_to(store).as_posix())
        return file_digest(path)

    monkeypatch.setattr(content_check, "file_digest", digest)
    content_check._digest.cache_clear()
    for _ in range(2):
        with hta_sql.open(store) as opened:
            opened.run("temporal_breakdown").rows()
            opened.table("flows", runs=["first"]).rows()
    assert {path.split("/")[1] for path in compared} == {"temporal_breakdown", "flows"}
    assert sorted(path for path in compared if "flows" in path) == sorted(
        file_of(store, "first", rank, "flows").relative_to(store).as_posix() for rank in range(2)
    )
    path = file_of(store, "first", 0, "flows")
    changed(path, path.read_bytes())
    with hta_sql.open(store) as opened:
        opened.table("flows", runs=["first"]).rows()
    assert compared[-1] == path.relative_to(store).as_posix()
    assert len(compared) == 5


@pytest.mark.parametrize("by", ["library", "command"])
def test_verify_compares_files_of_any_size(
    store: Path,
    cli: Cli,
    by: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With ``verify``, the checksums of large files are compared before the answer is returned."""
    monkeypatch.setattr(content_check, "SMALL_BYTES", 1)
    path = file_of(store, "first", 0, "flows")
    flipped(path, 4)
    query = "SELECT DISTINCT run FROM flows"
    if by == "library":
        with hta_sql.open(store, verify=True) as opened:
            assert opened.sql(query).rows() == [("second",)]
        assert path.name in caplog.text
    else:
        done = cli("sql", store, query, "--verify", "--format", "csv")
        assert (done.code, done.out.split()) == (0, ["run", "second"])
        assert path.name in caplog.text


def test_verify_compares_objects_of_an_object_storage(store: Path) -> None:
    """``verify`` also compares checksums in object storage, which costs additional requests."""
    memory = fsspec.filesystem("memory")
    path = file_of(store, "first", 0, "flows")
    flipped(path, 4)
    for file in store.rglob("*"):
        if file.is_file():
            memory.pipe_file(f"/damaged/{file.relative_to(store).as_posix()}", file.read_bytes())
    with hta_sql.open("memory://damaged", verify=True) as opened:
        assert opened.sql("SELECT DISTINCT run FROM flows").rows() == [("second",)]


@pytest.mark.slow(reason="faults")
def test_a_flipped_bit_in_any_small_file_gives_a_right_answer_or_a_warning_that_names_it(
    store: Path, made: tuple[Path, Path, Answers], caplog: pytest.LogCaptureFixture
) -> None:
    """If any Parquet file has a flipped bit, answers are right or a warning names the file."""
    whole = every_row(store)
    files = [*damages.files_of(store, "parquet"), *damages.files_of(store, "materialized")]
    chance = random.Random(7)
    for path in (store / file.relative_to(store) for file in files):
        restore(made[0], made[1])
        content = bytearray(path.read_bytes())
        at = chance.randrange(len(content))
        content[at] ^= 1 << chance.randrange(8)
        changed(path, bytes(content))
        caplog.clear()
        assert is_right_or_named(store, whole, path, lambda: caplog.text), (path, at)


@pytest.mark.parametrize("most_bytes", [1, 1 << 20])
def test_of_many_files_those_of_mentioned_runs_are_compared(
    store: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, most_bytes: int
) -> None:
    """In a large store, a query that names a run compares only the files of that run."""
    monkeypatch.setattr(content_check, "MOST_BYTES", most_bytes)
    path = file_of(store, "first", 0, "flows")
    flipped(path, 4)
    with hta_sql.open(store) as opened:
        query = "SELECT DISTINCT run FROM flows WHERE run = $run"
        assert opened.sql(query, {"run": "second"}).rows() == [("second",)]
        assert (path.name in caplog.text) == (most_bytes > 1)
        assert opened.sql(query, {"run": "first"}).rows() == []
        assert path.name in caplog.text
