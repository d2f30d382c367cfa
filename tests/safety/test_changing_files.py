"""If a trace changes while it is read, the new version is stored or an error is raised."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pytest

import hta_sql
from hta_sql.ingestion import fingerprints, plan, rank
from hta_sql.ingestion.discover import discover
from hta_sql.store.disk.manifest import read_manifest
from hta_sql.traces.source import open_trace
from tests.safety.conftest import trace_of

if TYPE_CHECKING:
    from tests.safety.conftest import BusyTimes, WriteTraces


Change = Callable[[Path], object]
WhileRead = Callable[[Change], list[str]]


@pytest.fixture
def while_read(monkeypatch: pytest.MonkeyPatch) -> WhileRead:
    """Return a function that installs a callback for each opened trace, and lists the traces."""
    opened: list[str] = []

    def install(change: Change) -> list[str]:
        def changing(path: str) -> BinaryIO:
            stream = open_trace(path)
            opened.append(path)
            change(Path(path))
            return stream

        monkeypatch.setattr(rank, "open_trace", changing)
        return opened

    return install


def once(change: Change) -> Change:
    """Return a callback that only acts on its first call."""
    left = [change]

    def change_once(path: Path) -> None:
        if left:
            left.pop()(path)

    return change_once


def test_rewritten_once(
    write_traces: WriteTraces,
    busy_times: BusyTimes,
    while_read: WhileRead,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A rewritten trace is read again, and the manifest describes the version that was read."""
    traces = write_traces({0: 100.0}, events=3)
    new = json.dumps(trace_of(0, 120.0, 3))
    opened = while_read(once(lambda path: path.write_text(new)))
    with caplog.at_level(logging.WARNING):
        hta_sql.ingest(traces, traces / "job.store").close()
    assert len(opened) == 2
    assert "rank0.json changed while it was being read" in caplog.text
    assert busy_times(traces / "job.store") == {0: 360.0}
    (entry,) = read_manifest(traces / "job.store").entries
    assert entry.fingerprint == fingerprints.fingerprint(entry.source)
    with hta_sql.ingest(traces, traces / "job.store") as again:
        assert again.ingested
        assert again.ingested.results == []


def test_replaced_by_another_file(
    write_traces: WriteTraces,
    busy_times: BusyTimes,
    while_read: WhileRead,
) -> None:
    """A trace that is replaced while it is open is read again, from the new file."""
    traces = write_traces({0: 100.0})

    def replace(path: Path) -> None:
        path.with_suffix(".new").write_text(json.dumps(trace_of(0, 120.0)))
        path.with_suffix(".new").replace(path)

    while_read(once(replace))
    hta_sql.ingest(traces, traces / "job.store").close()
    assert busy_times(traces / "job.store") == {0: 120.0}


def test_still_being_written(
    tmp_path: Path,
    busy_times: BusyTimes,
    while_read: WhileRead,
) -> None:
    """Errors in a half-written trace are not reported if the trace is complete when read again."""
    path = tmp_path / "rank0.json.gz"
    whole = gzip.compress(json.dumps(trace_of(0, 100.0, 2000)).encode())
    path.write_bytes(whole[: len(whole) // 2])
    while_read(once(lambda path: path.write_bytes(whole)))
    hta_sql.ingest(path, tmp_path / "job.store", strict=True).close()
    assert busy_times(tmp_path / "job.store") == {0: 200_000.0}


@pytest.mark.parametrize("ingest", [hta_sql.ingest, partial(hta_sql.ingest_shard, shard=(1, 1))])
def test_changed_whenever_it_is_read(
    ingest: Callable[..., object],
    write_traces: WriteTraces,
    busy_times: BusyTimes,
    while_read: WhileRead,
) -> None:
    """A trace that changes during every read is reported; the other ranks are stored."""
    traces = write_traces({0: 100.0, 1: 110.0})

    def grow(path: Path) -> None:
        if path.name == "rank0.json":
            path.write_text(path.read_text() + "\n")

    opened = while_read(grow)
    with pytest.raises(hta_sql.TraceError, match=r"rank0\.json' changed .*Ingest the trace again"):
        ingest(traces, traces / "job.store")
    # It is read once together with the other rank, then three times separately.
    assert sum(path.endswith("rank0.json") for path in opened) == 4
    if ingest is not hta_sql.ingest:
        hta_sql.publish(traces / "job.store").close()
    assert busy_times(traces / "job.store") == {1: 110.0}


def test_gone_while_it_is_read(write_traces: WriteTraces, while_read: WhileRead) -> None:
    """A trace that is deleted while it is read raises an error: its last version may be unread."""
    traces = write_traces({0: 100.0})
    while_read(Path.unlink)
    with pytest.raises(hta_sql.TraceError, match=r"rank0\.json.*does not exist"):
        hta_sql.ingest(traces, traces / "job.store")


@pytest.mark.parametrize("options", [{}, {"jobs": 2}])
@pytest.mark.parametrize("is_known", [False, True], ids=["new", "known"])
def test_gone_before_it_is_read(
    write_traces: WriteTraces,
    busy_times: BusyTimes,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    is_known: bool,
) -> None:
    """A trace that disappears after discovery is reported; the other ranks are stored."""
    traces = write_traces({0: 100.0, 1: 110.0, 2: 120.0})
    store = traces / "job.store"
    if is_known:
        hta_sql.ingest({1: str(traces / "rank1.json")}, store, run="traces").close()

    def gone(*given: Any, **named: Any) -> Any:
        found = discover(*given, **named)
        (traces / "rank1.json").unlink()
        return found

    monkeypatch.setattr(plan, "discover", gone)
    with pytest.raises(
        hta_sql.TraceError, match=r"1 of 3 traces .*\n.*rank1\.json.*does not exist"
    ):
        hta_sql.ingest(traces, store, **options)
    assert busy_times(store) == {0: 100.0, 2: 120.0} | ({1: 110.0} if is_known else {})
