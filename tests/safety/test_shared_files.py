"""Stores can be changed if ranks that were read together share one Parquet file per table."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

import hta_sql
from hta_sql.exports.redaction.names import Redactor
from hta_sql.exports.redaction.stores import redact_store
from hta_sql.ingestion import tables
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.manifest import MANIFEST, file_paths, is_shared, read_manifest
from hta_sql.store.maintenance.verify import verify_store
from tests.manifests import write_manifest
from tests.runs.writing import called
from tests.safety.conftest import busy_times_of, trace_of
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.safety.conftest import BusyTimes, WriteTraces

DURATIONS = {rank: 100.0 + rank for rank in range(4)}


@pytest.fixture
def traces(write_traces: WriteTraces) -> Path:
    """Write the traces of four ranks with one kernel each."""
    return write_traces(DURATIONS)


@pytest.fixture
def store(traces: Path, tmp_path: Path) -> Path:
    """Ingest the four ranks together as run ``traces``."""
    ingest_only(traces, tmp_path / "job.store")
    return tmp_path / "job.store"


@pytest.fixture
def reread(traces: Path, store: Path) -> Path:
    """Ingest a new trace of rank 1, whose old rows remain in the shared files."""
    (traces / "rank1.json").write_text(json.dumps(trace_of(1, 900.0)))
    ingest_only(traces, store)
    return store


AFTER = DURATIONS | {1: 900.0}
"""Kernel time of each rank after rank 1 was read again [µs]."""


def kernel_files(store: Path, run: str = "traces") -> dict[int, str]:
    """Return the path of each rank's ``gpu_ops`` file."""
    entries = read_manifest(store).entries
    return {e.rank: e.files["gpu_ops"]["path"] for e in entries if e.run == run}


def parquet_files(store: Path) -> set[str]:
    """Return the Parquet files on disk."""
    return {path.relative_to(store).as_posix() for path in (store / "tables").rglob("*.parquet")}


def inodes_of_ranks(store: Path) -> set[int]:
    """Return the inodes of the files of ranks, without derived tables, which are computed again."""
    paths = file_paths(read_manifest(store).entries)
    return {(store / path).stat().st_ino for path in paths}


def stored_ranks(path: Path) -> list[int]:
    """Return the rank of each row in a file, sorted."""
    with duckdb.connect() as con:
        rows = con.read_parquet(str(path), hive_partitioning=False)
        return [rank for (rank,) in rows.project("rank").order("rank").fetchall()]


def test_a_table_is_one_file(store: Path) -> None:
    """Four ranks share one file per table, and the manifest has each rank's row count in it."""
    entries = read_manifest(store).entries
    tables_of_rank = entries[0].files.keys()
    of_ranks = [path for path in parquet_files(store) if "/ranks/" in path]  # not derived tables
    assert len(of_ranks) == len(tables_of_rank)
    (path,) = set(kernel_files(store).values())
    assert is_shared(path)
    assert stored_ranks(store / path) == list(DURATIONS)
    for entry in entries:
        file = entry.files["gpu_ops"]
        assert (file["rows"], file["file_rows"]) == (1, 4)
    on_disk = sum((store / path).stat().st_size for path in of_ranks)
    with hta_sql.open(store) as opened:
        assert opened.sql("SELECT size_bytes FROM runs").rows() == [(on_disk,)]


def test_a_large_rank_has_files_of_its_own(
    traces: Path, tmp_path: Path, busy_times: BusyTimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank with a large trace gets separate files, and views read both kinds of files."""
    monkeypatch.setattr("hta_sql.ingestion.running.batches.MOST_BYTES", 1 << 10)
    (traces / "rank2.json").write_text(json.dumps(trace_of(2, 10.0, events=20)))
    ingest_only(traces, tmp_path / "job.store")
    files = kernel_files(tmp_path / "job.store")
    assert [is_shared(files[rank]) for rank in sorted(files)] == [True, True, False, True]
    assert "/rank=2/" in files[2]
    assert busy_times(tmp_path / "job.store") == DURATIONS | {2: 200.0}
    assert not verify_store(tmp_path / "job.store", deep=True).faults


def test_rows_of_a_rank_that_was_read_again_are_not_read(
    reread: Path, busy_times: BusyTimes
) -> None:
    """Views skip the old rows of a rank that was read again, although the shared file has them."""
    assert busy_times(reread) == AFTER
    files = kernel_files(reread)
    assert files[0] == files[2] == files[3] != files[1]
    assert stored_ranks(reread / files[0]) == list(DURATIONS)
    assert not verify_store(reread, deep=True).faults


def test_a_file_that_no_rank_references_is_deleted(traces: Path, reread: Path) -> None:
    """Once all ranks in a shared file have been read again, the next ingest deletes the file."""
    shared = kernel_files(reread)[0]
    for rank in (0, 2):
        ingest_only(traces / f"rank{rank}.json", reread, run="traces", force=True)
    assert kernel_files(reread)[3] == shared
    ingest_only(traces / "rank3.json", reread, run="traces", force=True)
    ingest_only(traces, reread, run="other")
    assert shared not in parquet_files(reread)
    assert parquet_files(reread) == read_manifest(reread).named_files()
    with hta_sql.open(reread) as opened:
        assert opened.sql("SELECT run, count(*) FROM gpu_ops GROUP BY ALL ORDER BY run").rows() == [
            ("other", 4),
            ("traces", 4),
        ]


def test_a_removed_run_takes_its_files_along(traces: Path, reread: Path) -> None:
    """Removing a run deletes its shared files and returns their size, counted once per file."""
    ingest_only(traces, reread, run="other")
    paths = {file for file in parquet_files(reread) if "run=traces" in file}
    size = sum((reread / path).stat().st_size for path in paths)
    assert hta_sql.remove_runs(reread, "traces") == size
    assert not any("run=traces" in path for path in parquet_files(reread))
    assert hta_sql.retain_runs(reread, keep=0) == ["other"]
    assert not parquet_files(reread)


def test_a_renamed_run(traces: Path, reread: Path, busy_times: BusyTimes) -> None:
    """A renamed run has hard links to the same files, and its old name can be used again."""
    inodes = inodes_of_ranks(reread)
    hta_sql.rename_run(reread, "traces", "base")
    assert busy_times(reread) == AFTER
    assert inodes_of_ranks(reread) == inodes
    assert parquet_files(reread) == read_manifest(reread).named_files()
    assert not verify_store(reread, deep=True).faults
    ingest_only(traces, reread)
    with hta_sql.open(reread) as opened:
        counts = opened.sql("SELECT run, count(*) FROM gpu_ops GROUP BY run ORDER BY run").rows()
    assert counts == [("base", 4), ("traces", 4)]


def test_damage_is_that_of_all_ranks_in_the_file(
    traces: Path, reread: Path, busy_times: BusyTimes
) -> None:
    """``verify`` lists all ranks in a damaged shared file; reading them again restores the run."""
    path = reread / kernel_files(reread)[0]
    content = bytearray(path.read_bytes())
    content[400] ^= 1
    path.write_bytes(content)
    (fault,) = verify_store(reread).faults
    assert (fault.kind, fault.run, fault.ranks) == ("content", "traces", (0, 2, 3))
    ingest_only(traces, reread, run="traces", force=True)
    assert busy_times(reread) == AFTER
    assert not verify_store(reread, deep=True).faults


def test_verify_names_the_ranks_of_a_file(store: Path) -> None:
    """``verify`` reports a fault in a shared file in one line with all of its ranks."""
    (store / kernel_files(store)[0]).unlink()
    with pytest.raises(AssertionError, match=r"\(run traces ranks 0-3\): it is missing"):
        called("verify", store)


def test_a_lost_file_loses_its_run_until_it_is_read_again(
    traces: Path, store: Path, busy_times: BusyTimes, caplog: pytest.LogCaptureFixture
) -> None:
    """If a shared file is lost, its run is omitted until an ingest reads all ranks again."""
    ingest_only(traces / "rank0.json", store, run="other")
    (store / kernel_files(store)[0]).unlink()
    with hta_sql.open(store) as opened, caplog.at_level(logging.WARNING):
        assert opened.sql("SELECT DISTINCT run FROM gpu_ops").rows() == [("other",)]
    assert "omitted runs with missing or corrupt Parquet files" in caplog.text
    report = ingest_only(traces, store)
    assert [entry.rank for entry in report.results] == list(DURATIONS)
    hta_sql.remove_runs(store, "other")
    assert busy_times(store) == DURATIONS


def test_a_shard_that_read_ranks_again(traces: Path, tmp_path: Path, busy_times: BusyTimes) -> None:
    """If a shard reads a rank again, the published store has only the new rows."""
    store = tmp_path / "job.store"
    hta_sql.ingest_shard(traces, store, shard=(1, 1))
    (traces / "rank1.json").write_text(json.dumps(trace_of(1, 900.0)))
    report = hta_sql.ingest_shard(traces, store, shard=(1, 1))
    assert [entry.rank for entry in report.results] == [1]
    hta_sql.publish(store).close()
    assert busy_times(store) == AFTER
    assert not verify_store(store, deep=True).faults


def test_a_redacted_copy_has_the_rows_of_its_ranks_only(
    reread: Path, tmp_path: Path, busy_times: BusyTimes
) -> None:
    """A redacted copy of some ranks contains neither rows of other ranks nor replaced rows."""
    redact_store(store_folder(reread), tmp_path / "copy", Redactor("key"), ranks=[1, 2])
    assert busy_times(tmp_path / "copy") == {1: 900.0, 2: 102.0}
    (run,) = read_manifest(tmp_path / "copy").runs()
    files = kernel_files(tmp_path / "copy", run)
    assert {rank: stored_ranks(tmp_path / "copy" / path) for rank, path in files.items()} == {
        1: [1],
        2: [2],
    }
    assert not verify_store(tmp_path / "copy").faults


def test_roles_that_share_a_file(traces: Path, tmp_path: Path) -> None:
    """A store restricted to one role returns only the rows of its ranks, even in shared files."""
    store = tmp_path / "job.store"
    for rank, duration in DURATIONS.items():
        content = trace_of(rank, duration)
        role = "trainer" if rank < 2 else "rollout"
        content["distributedInfo"] = {"rank": rank, "role": role}
        (traces / f"rank{rank}.json").write_text(json.dumps(content))
    ingest_only(traces, store)
    assert len(set(kernel_files(store).values())) == 1
    with hta_sql.open(store) as opened:
        assert busy_times_of(opened.of_roles(["rollout"])) == {2: 102.0, 3: 103.0}


def test_a_manifest_without_the_rows_of_files(store: Path, busy_times: BusyTimes) -> None:
    """A store with an older manifest that has no ``file_rows`` can be queried."""
    for rank in DURATIONS:
        ingest_only(store.parent / "traces" / f"rank{rank}.json", store, run="traces", force=True)
    values = json.loads((store / MANIFEST).read_text())
    for entry in values["entries"]:
        for file in entry["files"].values():
            assert file.pop("file_rows") == file["rows"]
    write_manifest(store, values)
    assert busy_times(store) == DURATIONS
    assert not [fault for fault in verify_store(store).faults if fault.kind != "catalog"]


def test_a_query_of_one_rank_skips_the_others(
    write_traces: WriteTraces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query of one rank in a shared file reads only the row group of that rank."""
    monkeypatch.setattr(tables, "ROW_GROUP_ROWS", 2048)
    ingest_only(write_traces(DURATIONS, events=2048), tmp_path / "job.store")
    with duckdb.connect(str(tmp_path / "job.store" / "catalog.duckdb"), read_only=True) as con:
        for query in ("FROM gpu_ops WHERE rank = 2", "FROM temporal_breakdown(ranks := [2])"):
            ((_, profile),) = con.sql(f"EXPLAIN ANALYZE {query}").fetchall()
            assert set(re.findall(r"Row Groups Scanned:[\s│]*(\d+) / 4\b", profile)) == {"1"}
