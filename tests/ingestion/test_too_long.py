"""An event above the length limit is quarantined, and memory stays bounded."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from hta_sql.errors import TraceFormatError
from hta_sql.overlay import rewrite_trace
from hta_sql.traces import chunks, grammar
from hta_sql.traces.grammar import MAX_DEPTH
from hta_sql.traces.whole_files import trace_events
from tests.ingestion.corpus import event
from tests.ingestion.test_whole_files import END, HEAD, NO_END, names
from tests.ingestion.ways import (
    Outcome,
    Way,
    check_nothing_vanished,
    quarantine,
    rows_by_event,
    staged,
)

LIMIT = 2000
TOO_LONG = "longer than 16 MB"
WHOLE = [event(name=f'"good {n}"') for n in range(4)]
KEPT = ["good 0", "good 1", "good 2", "good 3"]


def padded(before: bytes, piece: bytes, behind: bytes, length: int = 3 * LIMIT) -> bytes:
    """Repeat a piece between a prefix and a suffix up to a given total length."""
    return before + piece * ((length - len(before + behind)) // len(piece)) + behind


ARGS = event(args='{"x": ')[:-1]
LONG = {
    "a text": padded(ARGS + b'"', b"y", b'"}}'),
    "a text with brackets and quotes": padded(ARGS + b'"', b'}]}, {\\"ph\\": \\"X\\"}, ', b'"}}'),
    "a text of backslashes": padded(ARGS + b'"', b"\\\\", b'"}}'),
    "a text of escaped quotes": padded(ARGS + b'"', b'\\"', b'"}}'),
    "numbers": padded(ARGS + b"[", b"1, ", b"1]}}"),
    "objects": padded(ARGS + b"[", b'{"name": 1}, ', b"1]}}"),
    "many arguments": padded(ARGS + b"{", b'"k": [{}], ', b'"z": 1}}}'),
    "a list in place of an event": padded(b"[", b"1, ", b"1]"),
    "a text without an end": padded(b'{"ph": "X", "name": "', b"y", b""),
    "brackets without an end": padded(b"", b"[", b""),
    "braces without an end": padded(b'{"ph": "X", "args": ', b'{"a":', b""),
    "closed too early, then words": padded(b'{"ph": oops} ', b"word ", b""),
    "words": padded(b"", b"word ", b"word"),
    "one word": padded(b"", b"x", b""),
    "a broken value before all else": padded(ARGS + b"oops, ", b'"y": 1, ', b'"z": 1}}'),
}


@pytest.fixture
def _short_events() -> object:
    with patch.object(chunks, "MAX_EVENT_BYTES", LIMIT):
        yield


@pytest.mark.usefixtures("_short_events")
@pytest.mark.parametrize(
    ("case", "slot"),
    [(case, slot) for n, case in enumerate(LONG) for slot in (0, 2, 4)],
)
def test_it_costs_itself(case: str, slot: int, tmp_path: Path) -> None:
    """Only the overlong event is lost, and its offset and length are reported."""
    path = tmp_path / "trace.json"
    texts = [*WHOLE[:slot], LONG[case], *WHOLE[slot:]]
    path.write_bytes(HEAD + b", ".join(texts) + END)
    outcome = read_in_some_ways(path)
    assert names(outcome) == KEPT
    assert outcome["metadata"] != [("{}",)]
    (row,) = quarantine(outcome)
    source = path.read_bytes()[row.byte_offset : row.byte_offset + row.byte_count]
    assert (row.event_id, row.reason, source) == (slot, TOO_LONG, LONG[case].rstrip())
    assert row.excerpt == source[:200].decode()


def read_in_some_ways(path: Path) -> Outcome:
    """Read a file with several chunk sizes; return the result, which must not depend on them."""
    first, *others = (
        staged(path, Way(size, careful=careful, is_deep=False))
        for size, careful in ((1 << 18, False), (150, False), (1, True))
    )
    assert others == [first, first]
    check_nothing_vanished(first)
    return first


@pytest.mark.usefixtures("_short_events")
@pytest.mark.parametrize("length", [LIMIT - 1, LIMIT, LIMIT + 1])
def test_the_limit_is_exact(length: int, tmp_path: Path) -> None:
    """An event of exactly the maximum length is stored, while a longer event is not."""
    path = tmp_path / "trace.json"
    exact = padded(ARGS + b'"', b"y", b'"}}', length)
    path.write_bytes(HEAD + b", ".join([WHOLE[0], exact, exact, WHOLE[1]]) + END)
    outcome = read_in_some_ways(path)
    is_kept = length <= LIMIT
    assert names(outcome) == ["good 0", *["bad", "bad"] * is_kept, "good 1"]
    assert [row.reason for row in quarantine(outcome)] == [] if is_kept else [TOO_LONG] * 2


@pytest.mark.usefixtures("_short_events")
@pytest.mark.parametrize("case", list(LONG)[1::3])
def test_a_file_that_breaks_off_inside(case: str, tmp_path: Path) -> None:
    """If a file ends inside an overlong event, both problems are quarantined."""
    path = tmp_path / "trace.json"
    path.write_bytes(HEAD + b", ".join([*WHOLE[:2], LONG[case][:-10]]))
    outcome = read_in_some_ways(path)
    assert names(outcome) == KEPT[:2]
    assert [row.reason for row in quarantine(outcome)] == [TOO_LONG, NO_END]


@pytest.mark.parametrize("beside", [b"", b", " + event(name="oops")])
@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("limit", [3000, MAX_DEPTH])
def test_depth_is_the_same_where_a_neighbor_is_broken(
    limit: int, more: int, beside: bytes, tmp_path: Path
) -> None:
    """The depth limit is the same if a different event in the chunk is malformed."""
    path = tmp_path / "trace.json"
    # The event and its arguments add two levels.
    inner = limit + more - 2
    deep = event(args='{"x": ' + "[" * inner + "]" * inner + "}")
    path.write_bytes(HEAD + event() + b", " + deep + beside + END)
    with patch.object(grammar, "MAX_DEPTH", limit):
        outcome = staged(path, Way(is_deep=False))
    assert len(rows_by_event(outcome)) == 2 - more
    too_deep = ["broken JSON: nested too deeply"] * more
    broken = ["broken JSON: Expecting value"] * bool(beside)
    assert [row.reason for row in quarantine(outcome)] == [*too_deep, *broken]
    check_nothing_vanished(outcome)


IMMENSE = {
    "a text": (event(args='{"x": "')[:-1], b"y", b'"}}'),
    "a text without an end": (b'{"ph": "X", "name": "', b"y", b""),
    "brackets": (b"", b"[", b""),
    "numbers": (b'{"ph": "X", "args": [', b"1,", b"1]}"),
    "objects": (b'{"ph": "X", "args": [', b'{"id":1},', b"1]}"),
    "objects without an end": (b"", b'{"id":', b""),
}
SCRIPT = """
import sys
from pathlib import Path
from tests.ingestion.ways import Way, staged
outcome = staged(Path(sys.argv[1]), Way(is_deep=False))
print(outcome.get("error") or (outcome["event_count"], len(outcome["quarantined"])))
# Not ru_maxrss: a process inherits that of the one that started it.
(peak,) = [line for line in Path("/proc/self/status").open() if line.startswith("VmHWM")]
print(peak.split()[1])
"""


def used_by(path: Path) -> tuple[int, float, str]:
    """Read a file in a separate process; return its peak memory [KB], CPU time [s] and output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(  # noqa: S603 - this Python
        [sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # DuckDB's progress bar may be printed before these lines.
    *_, said, peak = done.stdout.strip().splitlines()
    return int(peak), after.ru_utime - before.ru_utime, said


@pytest.mark.parametrize("case", IMMENSE)
def test_memory_does_not_grow_with_the_event(case: str, tmp_path: Path) -> None:
    """An event of 60 MB takes at most 10 % more memory than an event of 20 MB."""
    path = tmp_path / "trace.json"
    peaks = []
    for size in (20 << 20, 60 << 20):
        long = padded(*IMMENSE[case], size)
        path.write_bytes(HEAD + b", ".join([event(), long, event()]) + END)
        peak, seconds, said = used_by(path)
        assert said == "([(3,)], 1)"
        assert seconds < 60
        peaks.append(peak)
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < 700_000


def test_memory_of_many_broken_events(tmp_path: Path) -> None:
    """Half a million malformed events in one chunk take less than 800 MB."""
    path = tmp_path / "trace.json"
    path.write_bytes(HEAD + event() + b", " + b'{"ph":' * 500_000 + event() + END)
    peak, _, said = used_by(path)
    assert said == "([(500002,)], 500000)"
    assert peak < 800_000


@pytest.mark.usefixtures("_short_events")
def test_what_reads_events_one_by_one_does_not_take_the_start_for_the_whole(
    tmp_path: Path,
) -> None:
    """Rewriting a trace reports an overlong event as lost; ``trace_events`` raises an error."""
    path = tmp_path / "trace.json"
    path.write_bytes(HEAD + b", ".join([WHOLE[0], b"1" * 3 * LIMIT, WHOLE[1]]) + END)
    report = rewrite_trace(str(path), tmp_path / "out.json")
    assert (report.events, report.lost_count, report.lost[0]["reason"]) == (3, 1, TOO_LONG)
    written = json.loads((tmp_path / "out.json").read_bytes())["traceEvents"]
    assert [one["name"] for one in written] == KEPT[:2]
    with pytest.raises(TraceFormatError, match=TOO_LONG):
        list(trace_events(str(path)))
