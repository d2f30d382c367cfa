"""Stores with Flight Recorder dumps or memory snapshots are as safe as stores with traces."""

from __future__ import annotations

import gc
import pickle
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest

import hta_sql
from hta_sql.errors import TraceError
from hta_sql.ingestion.running.executors import executor_for
from hta_sql.store.catalog import build
from hta_sql.store.disk.manifest import read_manifest
from hta_sql.store.maintenance.edits import remove_runs, rename_run
from hta_sql.store.maintenance.retention import retain_runs
from hta_sql.store.maintenance.verify import verify_store
from tests.hang_jobs import training, write_pickles
from tests.safety.dask_noise import NOISE

pytestmark = NOISE

SNAPSHOT = Path(__file__).parents[1] / "traces" / "snapshots" / "training.json"


@dataclass(frozen=True)
class Kind:
    """A kind of input file.

    Attributes:
        write: Writes the files of four ranks to a folder.
        table: A table that only these files fill.
        analysis: An analysis that reads these files.
        refused: Contents of a malicious file, which would run a program when it is unpickled.
    """

    write: Callable[[Path], Path]
    table: str
    analysis: str
    refused: bytes


def write_dumps(folder: Path) -> Path:
    """Write the dumps of a job in which rank 3 ends early."""
    job = training(4, 2, 3)
    del job.programs[3][7:]
    return write_pickles(job, folder)


def write_snapshots(folder: Path) -> Path:
    """Write the same snapshot for each rank."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(4):
        shutil.copy(SNAPSHOT, folder / f"rank{rank}_snapshot.json")
    return folder


def hostile(value: dict[str, Any]) -> bytes:
    """Return a pickle of a value that also calls os.system."""
    return pickle.dumps(value, 2)[:-1] + b"cos\nsystem\n(S'true'\ntR."


KINDS = {
    "dumps": Kind(write_dumps, "fr_entries", "hang", hostile({"version": "2.10", "pg_config": {}})),
    "snapshots": Kind(
        write_snapshots,
        "snapshot_events",
        "snapshot_peak",
        hostile({"segments": [], "device_traces": []}),
    ),
}


@dataclass(frozen=True)
class Ingested:
    """A store with the only run ``job``, which tests copy, and its input files.

    Attributes:
        kind: Kind of the input files.
        files: Folder with the files of four ranks.
        store: The store.
        expected: Rows of the analysis.
    """

    kind: Kind
    files: Path
    store: Path
    expected: list[tuple[Any, ...]]


@pytest.fixture(scope="module", params=["dumps", "snapshots"])
def ingested(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ingested:
    """Ingest each kind of input file in turn."""
    top, kind = tmp_path_factory.mktemp("artifacts"), KINDS[request.param]
    files = kind.write(top / "files")
    hta_sql.ingest(files, top / "job.store", run="job").close()
    expected = rows_of(top / "job.store", kind)
    assert expected
    return Ingested(kind, files, top / "job.store", expected)


@pytest.fixture
def kind(ingested: Ingested) -> Kind:
    """Return the kind of input file."""
    return ingested.kind


@pytest.fixture
def files(ingested: Ingested) -> Path:
    """Return the folder with the files of four ranks, which tests do not change."""
    return ingested.files


@pytest.fixture
def expected(ingested: Ingested) -> list[tuple[Any, ...]]:
    """Return the rows of the analysis after a normal ingest."""
    return ingested.expected


@pytest.fixture
def copied(ingested: Ingested, tmp_path: Path) -> Path:
    """Return a copy of the store after a normal ingest."""
    store = Path(shutil.copytree(ingested.store, tmp_path / "copied.store"))
    build.build_catalog(store)  # views name the files of their own store
    return store


def rows_of(store: Path | str, kind: Kind, **scope: Any) -> list[tuple[Any, ...]]:
    """Return the rows of the analysis, without the run name."""
    with hta_sql.open(str(store)) as opened:
        return [row[1:] for row in opened.run(kind.analysis, **scope).rows()]


def test_old_runs_are_removed_with_their_files(kind: Kind, files: Path, tmp_path: Path) -> None:
    """Runs are removed only if they exceed both the number to keep and the maximum age."""
    store = tmp_path / "job.store"
    for run in ("first", "second", "third"):
        hta_sql.ingest(files, store, run=run).close()
    assert retain_runs(store, keep=1, older_than=timedelta(days=1)) == []
    assert retain_runs(store, keep=1) == ["first", "second"]
    with hta_sql.open(store) as opened:
        counted = f"SELECT DISTINCT run FROM {kind.table}"  # noqa: S608 - a constant
        assert opened.sql(counted).rows() == [("third",)]
    gc.collect()
    hta_sql.ingest(files, store, run="fourth").close()
    hta_sql.ingest(files, store, run="fifth").close()
    left = {path.parts[-3] for path in (store / "tables" / kind.table).rglob("*.parquet")}
    assert left == {"run=third", "run=fourth", "run=fifth"}
    assert verify_store(store, deep=True).faults == []


def test_a_run_is_renamed_and_removed(
    kind: Kind, files: Path, expected: list[tuple[Any, ...]], copied: Path
) -> None:
    """Renaming a run does not change its rows, and the renamed run can be removed."""
    rename_run(copied, "job", "night")
    assert rows_of(copied, kind, runs=["night"]) == expected
    hta_sql.ingest(files, copied, run="job").close()
    remove_runs(copied, ["night"])
    assert rows_of(copied, kind) == expected


@pytest.mark.parametrize("damage", ["lost", "cut off", "changed"])
def test_verify_names_a_damaged_table_and_an_ingest_restores_it(
    kind: Kind, files: Path, expected: list[tuple[Any, ...]], copied: Path, damage: str
) -> None:
    """``verify`` names the damaged table; ``ingest --force`` reads the input file again."""
    table = next((copied / "tables" / kind.table).rglob("*.parquet"))
    content = table.read_bytes()
    if damage == "lost":
        table.unlink()
    else:
        middle = len(content) // 2
        changed = bytes([content[middle] ^ 1]) + content[middle + 1 :]
        table.write_bytes(content[:middle] + (changed if damage == "changed" else b""))
    (fault,) = verify_store(copied).faults
    assert kind.table in fault.file
    hta_sql.ingest(files, copied, run="job", force=True).close()
    assert verify_store(copied, deep=True).faults == []
    assert rows_of(copied, kind) == expected


def test_shards_are_published_together(
    kind: Kind, files: Path, expected: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """Shards of dumps and snapshots are published together, like those of traces."""
    store = tmp_path / "job.store"
    for number in (1, 2, 3):
        hta_sql.ingest_shard(files, store, shard=(number, 3), run="job")
    hta_sql.publish(store, expect=3).close()
    assert rows_of(store, kind) == expected


def test_an_interrupted_ingest_goes_on(
    kind: Kind, files: Path, expected: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """The ingest after an interrupted one does not read files again that were already read."""
    store = tmp_path / "job.store"

    def interrupt(_result: Any, done: int, _total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hta_sql.ingest(files, store, run="job", jobs=1, progress=interrupt)
    with hta_sql.ingest(files, store, run="job", jobs=1) as opened:
        assert opened.ingested
        assert len(opened.ingested.resumed) >= 1
        assert len(opened.ingested.results) + len(opened.ingested.resumed) == 4
    assert rows_of(store, kind) == expected


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Return the URL of an in-memory bucket, and use an empty catalog cache."""
    (tmp_path / "cache").mkdir()
    monkeypatch.setattr(build, "cache_folder", lambda _: tmp_path / "cache")
    yield "memory://artifacts"
    fsspec.filesystem("memory").store.clear()


def test_files_and_stores_are_at_urls(
    kind: Kind, files: Path, expected: list[tuple[Any, ...]], memory: str, tmp_path: Path
) -> None:
    """Input files at URLs are ingested, and stores at URLs are queried and verified."""
    fs, top = fsspec.url_to_fs(f"{memory}/files")
    for path in files.iterdir():
        fs.pipe_file(f"{top}/{path.name}", path.read_bytes())
    hta_sql.ingest(f"{memory}/files", tmp_path / "near.store", run="job").close()
    assert rows_of(tmp_path / "near.store", kind) == expected
    store = f"{memory}/job.store"
    hta_sql.ingest(f"{memory}/files", store, run="job").close()
    assert rows_of(store, kind) == expected
    with hta_sql.ingest(f"{memory}/files", store, run="job") as opened:
        assert opened.ingested
        assert len(opened.ingested.unchanged) == 4
    assert verify_store(store).faults == []
    (first, *_) = [e.files[kind.table]["path"] for e in read_manifest(store).entries]
    fs.rm_file(f"{fsspec.url_to_fs(store)[1]}/{first}")
    hta_sql.ingest(f"{memory}/files", store, run="job", force=True).close()
    assert rows_of(store, kind) == expected


@pytest.mark.slow(reason="processes")
def test_a_dask_cluster_reads_them(
    kind: Kind, files: Path, expected: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """A Dask cluster reads the files. A refused file is named, and all other ranks are stored."""
    own = Path(shutil.copytree(files, tmp_path / "files"))
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        address = str(cluster.scheduler_address).replace("tcp://", "dask://")
        with executor_for(address) as executor:
            hta_sql.ingest(own, tmp_path / "job.store", run="job", executor=executor).close()
            assert rows_of(tmp_path / "job.store", kind) == expected
            victim = sorted(own.iterdir())[1]
            victim.write_bytes(kind.refused)
            with pytest.raises(TraceError, match=victim.name):
                hta_sql.ingest(own, tmp_path / "other.store", run="job", executor=executor)
    assert len(read_manifest(tmp_path / "other.store").entries) == 3
