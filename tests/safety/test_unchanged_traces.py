"""Opening a folder again reads and writes nothing if nothing has changed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fsspec.implementations.local import LocalFileOpener

import hta_sql
from hta_sql.ingestion import fingerprints
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.manifest import read_manifest
from hta_sql.store.disk.orphaned_files import remove_orphaned_files
from hta_sql.traces.peek import Stated
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.safety.conftest import WriteTraces


@pytest.fixture
def folder(write_traces: WriteTraces) -> Path:
    """Ingest eight ranks into a store next to their traces."""
    traces = write_traces({rank: 100.0 + rank for rank in range(8)}, events=500)
    ingest_only(traces, traces / "job.store")
    return traces


def state_of(store: Path) -> dict[str, tuple[int, int]]:
    """Return the modification time and inode of every file."""
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in store.rglob("*")
        if path.is_file()
    }


def test_no_trace_is_read_and_nothing_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unchanged traces are not read to find their ranks, because the manifest has the ranks."""
    monkeypatch.setattr(fingerprints, "peek", lambda path: pytest.fail(f"read {path}"))
    before = state_of(folder / "job.store")
    with hta_sql.ingest(folder, folder / "job.store") as opened:
        assert opened.ingested
        assert len(opened.ingested.unchanged) == 8
        assert opened.ingested.results == []
    assert state_of(folder / "job.store") == before


def seconds_of(ingest: Callable[[], hta_sql.TraceStore]) -> float:
    """Return the CPU time of an ingest [s], which does not depend on other processes."""
    started = time.process_time()
    ingest().close()
    return time.process_time() - started


def test_it_takes_a_tenth_of_the_time(folder: Path) -> None:
    """Opening an unchanged folder takes less than a tenth of the time of a full ingest."""
    store = folder / "job.store"
    anew = seconds_of(lambda: hta_sql.ingest(folder, store, force=True, jobs=1))
    again = min(seconds_of(lambda: hta_sql.ingest(folder, store)) for _ in range(5))
    assert again < anew / 10


def test_only_the_ends_of_a_trace_are_read(
    write_traces: WriteTraces, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the two ends of an unchanged trace are read, regardless of its length."""
    traces = write_traces({0: 100.0, 1: 101.0}, events=5000)
    ingest_only(traces, traces / "job.store")
    sizes: list[int] = []
    read = LocalFileOpener.read

    def counted(opener: LocalFileOpener, *size: int) -> bytes:
        content: bytes = read(opener, *size)
        if Path(opener.path).parent == traces:
            sizes.append(len(content))
        return content

    monkeypatch.setattr(LocalFileOpener, "read", counted)
    ingest_only(traces, traces / "job.store")
    assert sizes == [fingerprints.ENDS_BYTES] * 4
    assert sum(sizes) < sum(path.stat().st_size for path in traces.glob("*.json")) / 5


def test_a_changed_file_is_read_and_the_others_are_not(
    folder: Path, write_traces: WriteTraces, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace with changed bytes is read again even if its size and modification time are equal."""
    store = folder / "job.store"
    path = folder / "rank3.json"
    status = path.stat()
    write_traces({3: 503.0}, events=500)
    assert path.stat().st_size == status.st_size
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    peeked: list[str] = []

    def peek(path: str) -> Stated:
        peeked.append(Path(path).name)
        return Stated(3, 0)

    monkeypatch.setattr(fingerprints, "peek", peek)
    with hta_sql.ingest(folder, store) as opened:
        assert opened.ingested
        assert [result.rank for result in opened.ingested.results] == [3]
    assert peeked == ["rank3.json"]


def test_a_file_without_a_rank_keeps_its_place(tmp_path: Path, write_traces: WriteTraces) -> None:
    """Ranks that are numbered by file name order are renumbered when a file is added."""
    traces = write_traces({0: 100.0})
    text = (traces / "rank0.json").read_text()
    (traces / "rank0.json").unlink()
    for name in ("b.json", "a.json"):
        (traces / name).write_text(text.replace('"distributedInfo": {"rank": 0}, ', ""))
        with hta_sql.ingest(traces, tmp_path / "job.store") as opened:
            rows = opened.sql("SELECT rank, source, rank_source FROM ranks ORDER BY rank").rows()
    assert [(rank, Path(source).name) for rank, source, _ in rows] == [(0, "a.json"), (1, "b.json")]
    assert {row[2] for row in rows} == {"order of names"}


def test_what_an_ingest_replaces_goes_with_the_one_after(
    tmp_path: Path, write_traces: WriteTraces
) -> None:
    """Replaced and partial files are deleted by the next ingest, but a user's files are kept."""
    store = tmp_path / "job.store"
    ingest_only(write_traces({0: 100.0}), store)
    first = read_manifest(store).named_files()
    ingest_only(write_traces({0: 200.0}), store)
    assert all((store / name).exists() for name in first)
    for name in (".manifest.json.1.partial", ".catalog.duckdb.1.partial", "empty/.x.partial"):
        (store / name).parent.mkdir(exist_ok=True)
        (store / name).write_text("")
    (store / "notes.txt").write_text("mine")
    removed = remove_orphaned_files(store_folder(store), read_manifest(store))
    assert removed == len(first) + 3
    assert (store / "notes.txt").exists()
