"""Checks that several recordings (spans) of a rank can form one run, without overlaps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

from hta_sql.errors import TraceError
from hta_sql.store.disk.manifest import RankEntry
from hta_sql.store.disk.run_names import is_unix_time

MOST_SPANS = 256
"""Maximum number of spans of a rank.

An event id contains the span in bits 32 to 39, and queries store the rank above these 40 bits.
"""

DUMP_SPAN = 1 << 16
"""Span number of the entry of a Flight Recorder dump, which has no events."""

SNAPSHOT_SPAN = DUMP_SPAN + 1
"""Span number of the entry of a memory snapshot, whose events have separate ids."""

EXECUTION_TRACE_SPAN = DUMP_SPAN + 2
"""Span number of the entry of an execution trace, whose nodes have separate ids."""

ARTIFACTS: dict[int, Literal["dump", "snapshot", "execution_trace"]] = {
    DUMP_SPAN: "dump",
    SNAPSHOT_SPAN: "snapshot",
    EXECUTION_TRACE_SPAN: "execution_trace",
}
"""Reserved span number ─▶ kind of artifact; all other span numbers belong to traces."""


def check_spans(entries: Iterable[RankEntry]) -> None:
    """Raise if the spans of a run cannot be distinguished by time and step.

    Args:
        entries: Entries of all runs, with their facts.

    Raises:
        TraceError: Spans of a run overlap in time, use different kinds of clocks, share a step or
            have no steps, or a rank has more than :data:`MOST_SPANS` spans.
    """
    runs: dict[str, list[RankEntry]] = defaultdict(list)
    for entry in entries:
        if entry.span not in ARTIFACTS:
            runs[entry.run].append(entry)
    for run, members in runs.items():
        if any(entry.span for entry in members) and (problem := _problem(members)):
            raise TraceError(
                f"The recordings of run {run!r} cannot be joined into one run: {problem}. "
                "Without --join-spans, each recording becomes a separate run."
            )


def _problem(entries: Sequence[RankEntry]) -> str | None:
    if max(entry.span for entry in entries) >= MOST_SPANS:
        return f"a rank has more than {MOST_SPANS} of them"
    known = [(entry, entry.start_ns) for entry in entries if entry.start_ns is not None]
    if len(known) < len(entries) or not all(entry.step_names for entry in entries):
        return "one of them has no profiler step"
    is_unix = {is_unix_time(start) for _, start in known}
    if len(is_unix) > 1:
        return "only some of them have baseTimeNanoseconds, so their times cannot be compared"
    spans_of: dict[str, set[int]] = defaultdict(set)
    # Clocks that count from machine boot are only comparable within a rank.
    times: dict[int | None, dict[int, tuple[int, int]]] = defaultdict(dict)
    for entry, start in known:
        end = start + int(entry.facts.get("dur") or 0)
        spans = times[None if is_unix == {True} else entry.rank]
        first, last = spans.get(entry.span, (start, end))
        spans[entry.span] = min(first, start), max(last, end)
        for step in entry.step_names:
            spans_of[step].add(entry.span)
    for spans in times.values():
        for (earlier, (_, end)), (later, (start, _)) in pairwise(sorted(spans.items())):
            if end > start:
                return f"recording {later + 1} starts before recording {earlier + 1} ends"
    shared = sorted(step for step, where in spans_of.items() if len(where) > 1)
    return f"several of them contain {shared[0]}" if shared else None
