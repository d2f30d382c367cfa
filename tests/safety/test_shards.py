"""Each job of an array ingests a shard, and one publish combines the shards in the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql.ingestion.plan import share
from hta_sql.ingestion.trace_file import TraceFile
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.manifest import read_manifest
from tests.manifests import write_shard_file
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.cli.conftest import Cli
    from tests.safety.conftest import BusyTimes, WriteTraces

DURATIONS = {rank: 100.0 + rank for rank in range(5)}


@pytest.fixture
def traces(write_traces: WriteTraces) -> Path:
    """Write the traces of five ranks."""
    return write_traces(DURATIONS)


def files_of(store: Path) -> set[str]:
    """Return the Parquet files of a store."""
    return {path.relative_to(store).as_posix() for path in store.rglob("*.parquet")}


def test_shards_then_publish(traces: Path, tmp_path: Path, busy_times: BusyTimes) -> None:
    """A store of shards cannot be opened before the publish, which can be repeated."""
    store = tmp_path / "job.store"
    read = [hta_sql.ingest_shard(traces, store, shard=(number, 3)) for number in (3, 1, 2)]
    ranks = [[result.rank for result in report.results] for report in read]
    assert sorted(rank for part in ranks for rank in part) == list(DURATIONS)
    assert all(ranks)
    with pytest.raises(hta_sql.StoreNotFoundError, match="hta-sql publish"):
        hta_sql.open(store)
    for _ in range(2):
        hta_sql.publish(store, expect=3).close()
        assert busy_times(store) == DURATIONS
    assert files_of(store) == read_manifest(store).named_files()
    assert not list(store.glob("shards/*"))  # not even lock files, which would accumulate


def test_what_killed_jobs_were_writing_goes(traces: Path, tmp_path: Path) -> None:
    """A publish deletes the files of killed jobs, but not files that a job is writing."""
    folder = store_folder(tmp_path / "job.store")
    hta_sql.ingest_shard(traces, folder.root, shard=(1, 1))
    for name in ("traces.1-of-1", "other.1-of-2", "other.2-of-2"):
        Path(folder.path(f"shards/.{name}.json.0123456789abcdef.partial")).write_text("{")
        Path(folder.path(f"shards/.{name}.lock")).touch()
    with store_lock(folder, 0, "shards/.other.2-of-2.lock"):
        hta_sql.publish(folder.root).close()
    assert folder.files("shards") == [
        "shards/.other.2-of-2.json.0123456789abcdef.partial",
        "shards/.other.2-of-2.lock",
    ]


def test_what_is_missing_is_named(traces: Path, tmp_path: Path, busy_times: BusyTimes) -> None:
    """Missing shards are an error with ``expect``; without it, the complete ones are published."""
    store = tmp_path / "job.store"
    with pytest.raises(hta_sql.StoreError, match="No complete shards"):
        hta_sql.publish(store)
    hta_sql.ingest_shard(traces, store, shard=(2, 3))
    with pytest.raises(hta_sql.StoreError, match=r"traces.1-of-3, traces.3-of-3\. Nothing was"):
        hta_sql.publish(store, expect=3)
    with hta_sql.publish(store) as opened:
        assert opened.published
        assert opened.published.merged == ["traces.2-of-3"]
        assert opened.published.missing == ["traces.1-of-3", "traces.3-of-3"]
    for number in (1, 3):
        hta_sql.ingest_shard(traces, store, shard=(number, 3))
    hta_sql.publish(store, expect=3).close()
    assert busy_times(store) == DURATIONS


def test_an_ingest_leaves_unpublished_shards_alone(
    traces: Path, write_traces: WriteTraces, tmp_path: Path
) -> None:
    """An ingest does not delete files that a shard job has written or is writing."""
    store = tmp_path / "job.store"
    hta_sql.ingest_shard(traces, store, shard=(1, 2))
    hta_sql.ingest_shard(traces, store, shard=(2, 2))
    path = store / "shards" / "traces.2-of-2.json"
    running = json.loads(path.read_text())
    running |= {"complete": False, "entries": []}
    write_shard_file(path, running)
    unfinished = store / "tables" / "gpu_ops" / f".{running['writer']}x.partial"
    unfinished.write_text("")
    stray = store / "tables" / "gpu_ops" / "someone-else.parquet"
    stray.write_text("")
    before = files_of(store)
    ingest_only(write_traces({0: 1.0}, "other"), store)
    assert before - files_of(store) == {"tables/gpu_ops/someone-else.parquet"}
    assert unfinished.exists()
    with hta_sql.publish(store) as opened:
        assert opened.published
        assert opened.published.missing == ["traces.2-of-2 (started, not finished)"]


def test_a_shard_that_was_killed_goes_on(traces: Path, tmp_path: Path) -> None:
    """A restarted shard job does not read ranks again that are already read or published."""
    store = tmp_path / "job.store"

    def stop_after_two(_result: object, done: int, _total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hta_sql.ingest_shard(traces, store, shard=(1, 1), jobs=1, progress=stop_after_two)
    again = hta_sql.ingest_shard(traces, store, shard=(1, 1), jobs=1)
    assert (len(again.unchanged), len(again.results)) == (2, 3)
    hta_sql.publish(store).close()
    after = hta_sql.ingest_shard(traces, store, shard=(1, 1), jobs=1)
    assert (len(after.unchanged), len(after.results)) == (5, 0)
    with hta_sql.publish(store) as opened:
        assert opened.ranks() == list(DURATIONS)


def test_a_broken_trace_is_told_at_the_publish(traces: Path, tmp_path: Path, cli: Cli) -> None:
    """The publish reports a corrupt trace in a shard and stores the other ranks."""
    store = tmp_path / "job.store"
    (traces / "rank2.json").write_text('{"distributedInfo": {"rank": 2}, "traceEvents": [')
    with pytest.raises(hta_sql.TraceError, match=r"rank2\.json"):
        hta_sql.ingest_shard(traces, store, shard=(1, 1), strict=True)
    done = cli("publish", store)
    assert done.code == 0
    assert "warning: a trace could not be read: " in done.err
    assert "rank2.json" in done.err
    assert "Published 1 shard; 4 ranks in the store." in done.err


def test_the_command_line(traces: Path, tmp_path: Path, cli: Cli) -> None:
    """``hta-sql ingest --shard`` and ``hta-sql publish`` can ingest a job in two shards."""
    store = tmp_path / "job.store"
    first = cli("ingest", traces, "-o", store, "--shard", "1/2")
    assert f"Next: hta-sql publish {store} --expect 2" in first.err
    cli("publish", store, "--expect", "2").fails(1, "traces.2-of-2")
    cli("run", store, "temporal_breakdown").fails(1, "hta-sql publish")
    assert cli("ingest", traces, "-o", store, "--shard", "2/2").code == 0
    assert "Published 2 shards; 5 ranks" in cli("publish", store, "--expect", "2").err
    assert "Nothing to publish; 5 ranks" in cli("publish", store, "--expect", "2").err
    for wrong in ("0/2", "3/2", "2", "a/b"):
        cli("ingest", traces, "-o", store, "--shard", wrong).fails(2, "1/16 or 16/16")
    with pytest.raises(hta_sql.ParameterError, match="numbered from 1/2 to 2/2"):
        hta_sql.ingest_shard(traces, store, shard=(0, 2))


def test_what_is_published_is_kept(traces: Path, tmp_path: Path, cli: Cli) -> None:
    """``hta-sql publish --materialize`` materializes answers even if nothing is left to publish."""
    store = tmp_path / "job.store"
    hta_sql.ingest_shard(traces, store, shard=(1, 1))
    hta_sql.publish(store).close()
    assert cli("publish", store, "--materialize").code == 0
    assert "temporal_breakdown" in {kept.table for kept in read_manifest(store).materialized}


def test_shares_are_even_and_the_same_everywhere(tmp_path: Path) -> None:
    """Traces are distributed evenly over shards by size, independent of their order."""
    files = []
    for rank, size in enumerate([900, 100, 100, 400, 300, 100, 500, 0]):
        path = tmp_path / f"rank{rank}.json"
        path.write_bytes(bytes(size))
        files.append(TraceFile(str(path), rank, "given"))
    parts = [share(files, number, 3) for number in (1, 2, 3)]
    assert parts == [share(files[::-1], number, 3) for number in (1, 2, 3)]
    assert sorted(file.rank for part in parts for file in part) == list(range(8))
    loads = [sum(Path(file.path).stat().st_size for file in part) for part in parts]
    assert max(loads) == 900
    assert min(loads) >= 700
    assert share(files, 20, 20) == []
