"""A slice of a job is a complete trace on one clock, with only the requested events."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.errors import ParameterError, RankError
from hta_sql.overlay.looks import look_at
from hta_sql.overlay.slices import Slice, Wanted, write_slice
from tests.jobs.kinds import DP
from tests.jobs.spec import Clock
from tests.jobs.traces import write_job
from tests.serving_jobs import continuous_batching, trace

Json = dict[str, Any]
MS = 1_000_000
LATE_MS = 3


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Write the traces of two hosts, the second of which has a clock that is 3 ms ahead."""
    job = replace(DP, ranks=2, steps=3, hosts=2, clocks={1: Clock(LATE_MS * MS)})
    return write_job(tmp_path_factory.mktemp("slices"), job)[0]


@pytest.fixture(scope="module")
def store(files: dict[int, str]) -> Iterator[hta_sql.TraceStore]:
    """Ingest the job and open its store."""
    where = Path(files[0]).parent / "job.store"
    with hta_sql.ingest(files, where, run="job", jobs=1) as opened:
        yield opened


def recorded(path: str) -> list[Json]:
    """Return the events in a trace file."""
    data = Path(path).read_bytes()
    content = json.loads(gzip.decompress(data) if path.endswith(".gz") else data)
    return list(content["traceEvents"])


def sliced(store: hta_sql.TraceStore, folder: Path, **wanted: Any) -> list[Json]:
    """Write a slice and return its events."""
    given = {"run": "job", "ranks": (0,)} | wanted
    written = write_slice(store, Wanted(**given), folder / "slice.json")
    events = recorded(written.path)
    assert written.events == len(events)
    return events


def times(event: Json, ahead_ms: float = 0) -> tuple[float, float]:
    """Return the start and the end of an event [us]."""
    return event["ts"] - ahead_ms * 1000, event["ts"] + event.get("dur", 0) - ahead_ms * 1000


def test_a_whole_rank_is_its_file(
    store: hta_sql.TraceStore, files: dict[int, str], tmp_path: Path
) -> None:
    """A slice of a whole rank has the events of its file in order, plus process names."""
    found = sliced(store, tmp_path)
    named = [event for event in found if event not in recorded(files[0])]
    assert [event for event in found if event not in named] == recorded(files[0])
    assert {event["args"]["name"] for event in named} <= {"rank 0: CPU", "rank 0: GPU 0"}


def test_a_window_has_every_event_that_is_in_it(
    store: hta_sql.TraceStore, files: dict[int, str], tmp_path: Path
) -> None:
    """A slice of a window has every event that overlaps it, and all process and thread names."""
    events = recorded(files[0])
    look = look_at(store, steps=[1])
    zero = min(event["ts"] for event in events if event["ph"] != "M")
    start, until = (zero + ns / 1000 for ns in look.wanted.window or ())
    expected = [
        event
        for event in events
        if event["ph"] == "M" or (times(event)[0] < until and times(event)[1] >= start)
    ]
    found = sliced(store, tmp_path, window=look.wanted.window)
    assert found == expected
    assert 0 < len(found) < len(events)


def test_a_window_of_an_iteration_ends_with_its_last_kernel(tmp_path: Path) -> None:
    """The window of an iteration ends with its last kernel and has no other iteration's kernels."""
    job = continuous_batching(6, 8)
    file = tmp_path / "rank0.json"
    file.write_text(json.dumps(trace(job)), encoding="utf-8")
    with hta_sql.ingest(file, tmp_path / "job.store", run="job") as opened:
        rows = opened.run("iterations").records()
        for numbers in ([1], [4], [3, 5]):
            look = look_at(opened, iterations=numbers)
            first, last = rows[numbers[0] - 1], rows[numbers[-1] - 1]
            assert look.zoom == (first["ts"], last["device_ts"] + last["device_ns"])
            found = recorded(write_slice(opened, look.wanted, tmp_path / "slice.json").path)
            kernels = [event["name"] for event in found if event.get("cat") == "kernel"]
            between = job[numbers[0] - 1 : numbers[-1]]
            assert kernels == [kernel.name for one in between for kernel in one.kernels]
        with pytest.raises(ParameterError, match=r"No iteration 9; available: 1 to 8\."):
            look_at(opened, iterations=[9])
        with pytest.raises(ParameterError, match="pass only one of them"):
            look_at(opened, iterations=[1], steps=[1])


def test_what_overlaps_has_a_track_beside_it(
    ingest_trace: Callable[..., hta_sql.TraceStore], tmp_path: Path
) -> None:
    """A kernel that overlaps the previous one is moved to a separate track.

    A viewer would otherwise omit it.
    """
    where = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7}
    spans = {"first": (100, 10), "inside": (101, 2), "early": (108, 30), "later": (140, 5)}
    kernels = [
        where | {"name": name, "ts": ts, "dur": dur, "args": {"device": 0, "stream": 7}}
        for name, (ts, dur) in spans.items()
    ]
    arrow = {
        "ph": "f",
        "cat": "ac2g",
        "name": "ac2g",
        "id": 1,
        "pid": 0,
        "tid": 7,
        "ts": 108,
        "bp": "e",
    }
    store = ingest_trace([*kernels, arrow])
    found = sliced(store, tmp_path, run=store.runs()[0])
    tracks = {event["name"]: event["tid"] for event in found if event["ph"] != "M"}
    assert tracks == {"first": 7, "inside": 7, "early": 8, "later": 7, "ac2g": 8}
    names = [
        event["args"] for event in found if event["name"] == "thread_name" and event["tid"] == 8
    ]
    assert names == [{"name": "stream 7: overlapping events"}]


def test_categories_are_chosen(
    store: hta_sql.TraceStore, files: dict[int, str], tmp_path: Path
) -> None:
    """A slice of one category has only its events, plus the process and thread names."""
    found = sliced(store, tmp_path, categories=("kernel",))
    kernels = [event for event in recorded(files[0]) if event.get("cat") == "kernel"]
    assert [event for event in found if event["ph"] != "M"] == kernels != []


@pytest.mark.parametrize("align", [True, False])
def test_ranks_are_beside_each_other_on_one_clock(
    store: hta_sql.TraceStore, files: dict[int, str], tmp_path: Path, *, align: bool
) -> None:
    """With aligned clocks, collectives end at the same time on all ranks.

    Devices of different ranks have different process ids.
    """
    found = sliced(store, tmp_path, ranks=(0, 1), align=align)
    names = {
        event["pid"]: event["args"]["name"] for event in found if event["name"] == "process_name"
    }
    ends: dict[str, list[float]] = {"rank 0": [], "rank 1": []}
    for event in found:
        if event.get("cat") == "kernel" and event["name"].startswith("nccl"):
            ends[names[event["pid"]][:6]].append(times(event)[1])
    apart = [abs(mine - other) for mine, other in zip(*ends.values(), strict=True)]
    assert apart
    assert all((us < 100) if align else (abs(us - LATE_MS * 1000) < 100) for us in apart)
    both = Counter(event["name"] for rank in files for event in recorded(files[rank]))
    there = Counter(event["name"] for event in found)
    del both["process_name"], there["process_name"]
    assert there == both


def test_arrows_of_ranks_are_not_mixed(store: hta_sql.TraceStore, tmp_path: Path) -> None:
    """Both ends of an arrow are on the same rank."""
    found = sliced(store, tmp_path, ranks=(0, 1), critical_path=True)
    arrows = [event for event in found if event["ph"] in ("s", "f")]
    ids = Counter(event["id"] for event in arrows)
    assert set(ids.values()) == {2}
    assert len({event["pid"] // 1000 for event in arrows}) == len(store.ranks("job"))


def test_a_path_and_counters_are_added(
    store: hta_sql.TraceStore, files: dict[int, str], tmp_path: Path
) -> None:
    """A critical path and counters added to a slice stay inside its window."""
    window = look_at(store, steps=[1]).wanted.window
    found = sliced(store, tmp_path, window=window, critical_path=True, counters=True)
    assert {"critical_path", "Queue Length"} <= {event["name"] for event in found}
    assert any(event.get("args", {}).get("critical") == 1 for event in found)
    zero = min(event["ts"] for event in recorded(files[0]) if event["ph"] != "M")
    start, until = (zero + ns / 1000 for ns in window or ())
    added = [e["ts"] for e in found if e["name"] in {"critical_path", "Queue Length"}]
    assert start <= min(added) < max(added) < until


def test_what_is_looked_at_is_in_the_clock_of_the_file(store: hta_sql.TraceStore) -> None:
    """The initial view shows the step or the event on the clock of the written file."""
    written_zero = 10**15
    written = Slice("", 0, written_zero, {})
    step = look_at(store, steps=[1])
    assert step.zoom == step.wanted.window
    start, until = step.zoom or (0, 0)
    view = {"visStart": start + written_zero, "visEnd": until + written_zero}
    assert step.view(written) == view
    ((event_id, ts, dur, pid, tid),) = store.sql(
        "SELECT event_id, ts, dur, pid, tid FROM events WHERE rank = 0 AND category = 'kernel' LIMIT 1"
    ).rows()
    one = look_at(store, event=event_id)
    assert one.event == {"ts": ts, "dur": dur, "pid": pid, "tid": tid}
    assert one.view(written)["ts"] == ts + written_zero
    moved = replace(written, moved={(pid, tid, ts + written_zero): 99})
    assert one.view(moved)["tid"] == 99
    low, high = one.wanted.window or (0, 0)
    assert low < ts < ts + dur < high


def test_advice_is_looked_at_by_its_rule_or_its_id(store: hta_sql.TraceStore) -> None:
    """A finding can be opened by rule or id; the view shows its worst rank and its event."""
    row = next(row for row in store.run("advice").records() if row["is_worst"])
    for name in (row["rule"], row["finding_id"]):
        look = look_at(store, finding=name)
        assert (look.wanted.run, look.wanted.ranks) == (row["run"], (row["rank"],))
        assert (look.event is None) == (row["event_id"] is None)


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"run": "jbo"}, RankError, "No run 'jbo'; available: job"),
        ({"ranks": [7]}, RankError, "No rank 7 in run 'job'; available ranks: [0, 1]"),
        ({"steps": [99]}, ParameterError, "No step 99; available steps: 0-1"),
        ({"event": 10**6}, ParameterError, "has no event 1000000"),
        ({"finding": "lunch_bound"}, ParameterError, "No finding 'lunch_bound'"),
        ({"finding": "a", "event": 1}, ParameterError, "already selects an event"),
        ({"ranks": [0, 1], "event": 1}, ParameterError, "unique within a rank"),
    ],
)
def test_what_is_not_there_is_said(
    store: hta_sql.TraceStore, asked: Json, error: type[Exception], message: str
) -> None:
    """The error for an unknown run, rank, step, event or finding explains what is available."""
    with pytest.raises(error) as caught:
        look_at(store, **asked)
    assert message in str(caught.value)
