"""An interrupted ingest saves the ranks that it has read, and the next ingest reuses them."""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql.store.disk import orphaned_files
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.manifest import read_manifest
from tests.safety.conftest import trace_of
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.cli.conftest import Cli
    from tests.safety.conftest import BusyTimes, WriteTraces

DURATIONS = {rank: 100.0 + rank for rank in range(5)}
Progress = Callable[[Any, int, int], None]


@pytest.fixture
def traces(write_traces: WriteTraces) -> Path:
    """Write the traces of five ranks."""
    return write_traces(DURATIONS)


@dataclass(frozen=True)
class Made:
    """A folder with traces and a store, its backup, and the log of the interrupted ingest."""

    folder: Path
    backup: Path
    said: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Ingest rank 0 of five, then interrupt the ingest of the other ranks after two of them."""
    top = tmp_path_factory.mktemp("interrupted")
    traces, place = top / "job" / "traces", top / "job" / "job.store"
    traces.mkdir(parents=True)
    for rank, duration in DURATIONS.items():
        (traces / f"rank{rank}.json").write_text(json.dumps(trace_of(rank, duration)))
    ingest_only(traces, place, ranks=[0])
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    logging.getLogger("hta_sql").addHandler(handler)
    try:
        interrupted(traces, place)
    finally:
        logging.getLogger("hta_sql").removeHandler(handler)
    shutil.copytree(top / "job", top / "backup")
    return Made(top / "job", top / "backup", said.getvalue())


@pytest.fixture
def store(made: Made) -> Path:
    """Restore the store to the state that the interrupted ingest left."""
    shutil.rmtree(made.folder)
    # copytree preserves modification times; a newer trace would be read again.
    shutil.copytree(made.backup, made.folder)
    return made.folder / "job.store"


@pytest.fixture
def read_traces(store: Path) -> Path:
    """Return the traces of the interrupted ingest."""
    return store.with_name("traces")


def interrupt_after(count: int) -> Progress:
    """Return a progress callback that interrupts after a number of ranks, as Ctrl-C does."""

    def progress(_result: object, done: int, _total: int) -> None:
        if done == count:
            raise KeyboardInterrupt

    return progress


def interrupted(traces: Path, store: Path, **options: Any) -> None:
    """Start an ingest, and interrupt it after two ranks."""
    with pytest.raises(KeyboardInterrupt):
        hta_sql.ingest(traces, store, jobs=1, progress=interrupt_after(2), **options)


def left(store: Path) -> list[int]:
    """Return the ranks that were read but not published."""
    return sorted(entry.rank for entry in orphaned_files.unfinished(store_folder(store)))


def files_of(store: Path) -> set[str]:
    """Return the Parquet files of a store."""
    return {path.relative_to(store).as_posix() for path in store.rglob("*.parquet")}


def test_it_goes_on_from_there(
    read_traces: Path, store: Path, busy_times: BusyTimes, made: Made
) -> None:
    """The next ingest reuses the ranks that were read. Until then, readers see the old store."""
    assert made.said.startswith("Interrupted: 2 ranks are stored but not published")
    assert len(made.said.splitlines()) == 1
    assert busy_times(store) == {0: 100.0}
    read: list[int] = []
    with hta_sql.ingest(
        read_traces, store, progress=lambda r, *_: read.append(r.job.rank)
    ) as opened:
        assert opened.ingested
        assert [entry.rank for entry in opened.ingested.resumed] == [1, 2]
        assert [entry.rank for entry in opened.ingested.unchanged] == [0]
    assert sorted(read) == [3, 4]
    assert busy_times(store) == DURATIONS
    assert not (store / "unfinished").exists()
    # The next writer deletes derived tables of the store as it was: readers may have it open.
    stale = files_of(store) - read_manifest(store).named_files()
    assert all("/all/" in path for path in stale), stale
    assert files_of(store) >= read_manifest(store).named_files()


def test_what_changed_meanwhile_is_read_again(
    read_traces: Path, store: Path, busy_times: BusyTimes
) -> None:
    """A saved rank is reused only if its trace is unchanged."""
    (read_traces / "rank1.json").write_text(json.dumps(trace_of(1, 900.0)))
    with hta_sql.ingest(read_traces, store) as opened:
        assert opened.ingested
        assert [entry.rank for entry in opened.ingested.resumed] == [2]
    assert busy_times(store) == DURATIONS | {1: 900.0}


def test_interrupted_once_more(read_traces: Path, store: Path, busy_times: BusyTimes) -> None:
    """Ranks saved by an interrupted ingest are still saved after a second interruption."""
    interrupted(read_traces, store)
    assert left(store) == [1, 2, 3, 4]
    with hta_sql.ingest(read_traces, store) as opened:
        assert opened.ingested
        assert opened.ingested.results == []
    assert busy_times(store) == DURATIONS


def test_others_leave_it_alone(read_traces: Path, store: Path) -> None:
    """An ingest of a different run does not delete the saved ranks."""
    ingest_only(read_traces / "rank0.json", store, run="other")
    ingest_only(read_traces / "rank0.json", store, run="other", force=True)
    assert left(store) == [1, 2]
    ingest_only(read_traces, store)
    with hta_sql.open(store) as opened:
        assert opened.ranks("traces") == list(DURATIONS)


@pytest.mark.parametrize("again", [{"all_or_nothing": True}, {"force": True}])
def test_who_wants_none_of_it(
    read_traces: Path, store: Path, busy_times: BusyTimes, again: dict[str, Any]
) -> None:
    """With options that request it, all traces are read again and the saved ranks are deleted."""
    with hta_sql.ingest(read_traces, store, **again) as opened:
        assert opened.ingested
        assert opened.ingested.resumed == []
    assert busy_times(store) == DURATIONS
    assert left(store) == []


def test_all_or_nothing_keeps_nothing(traces: Path, tmp_path: Path) -> None:
    """An interrupted all-or-nothing ingest changes nothing, and the next one deletes its files."""
    store = tmp_path / "job.store"
    interrupted(traces, store, all_or_nothing=True)
    assert left(store) == []
    with hta_sql.ingest(traces, store) as opened:
        assert opened.ingested
        assert len(opened.ingested.results) == len(DURATIONS)
    assert files_of(store) == read_manifest(store).named_files()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks what it kills")
def test_killed_between_two_records(
    traces: Path, tmp_path: Path, busy_times: BusyTimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill, all ranks that were recorded before it are reused."""
    monkeypatch.setattr(orphaned_files, "SAVE_S", 0.0)
    store = tmp_path / "job.store"

    def kill(_result: object, done: int, _total: int) -> None:
        if done == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        hta_sql.ingest(traces, store, jobs=1, progress=kill)
    os.waitpid(child, 0)
    assert left(store) == [0, 1, 2]
    with hta_sql.ingest(traces, store) as opened:
        assert opened.ingested
        assert [entry.rank for entry in opened.ingested.results] == [3, 4]
    assert busy_times(store) == DURATIONS


@pytest.mark.parametrize(
    "damage",
    [
        *("[" * 200_000, '{"schema_version": 9}'),
        "null",
        "{",
    ],
)
def test_a_damaged_record_is_read_again(
    read_traces: Path, store: Path, busy_times: BusyTimes, damage: str
) -> None:
    """Ranks whose record is damaged are read again."""
    records = list((store / "unfinished").glob("*.json"))
    assert records
    for record in records:
        record.write_text(damage)
    ingest_only(read_traces, store)
    assert busy_times(store) == DURATIONS
    assert not any(record.exists() for record in records)


def test_the_command_says_so(cli: Cli, read_traces: Path, store: Path) -> None:
    """``hta-sql ingest`` reports how many ranks it reused from an interrupted ingest."""
    done = cli("ingest", read_traces, "-o", store)
    assert "Read 2 ranks, 2 events" in done.err
    assert "2 ranks resumed from an interrupted ingest; 1 rank unchanged" in done.err
