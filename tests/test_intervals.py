"""Tests that compare the interval macros of sql/lib with simple reference functions.

They also test laws such as idempotence. Intervals are small integers, so that a reference function
can check every point in time.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.macros import engine_with

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MACROS = (
    "merged_intervals",
    "gaps",
    "intersected_intervals",
    "overlap_depth",
    "class_segments",
)
CLASSES = ("computation", "communication", "memory", "sync")


class Span(NamedTuple):
    """One interval of a lane."""

    lane: Any
    ts: int
    dur: int
    kind: str = "computation"

    @property
    def end(self) -> int:
        """Return the end of the span."""
        return self.ts + self.dur


Row = tuple[Any, ...]

# A lane may be NULL, a number, or a struct with a NULL inside: any grouping key.
LANES: dict[str, tuple[Any, list[Any]]] = {
    "number": (pa.int64(), [None, 1, 2]),
    "struct": (
        pa.struct([("run", pa.string()), ("rank", pa.int32())]),
        [{"run": "a", "rank": 0}, {"run": "a", "rank": 1}, {"run": None, "rank": 0}],
    ),
}


def spans_of(lane_kind: str) -> st.SearchStrategy[list[Span]]:
    """Draw lists of intervals that nest, touch, repeat, start before 0 or have zero length."""
    span = st.builds(
        Span,
        st.sampled_from(LANES[lane_kind][1]),
        st.integers(-6, 14),
        st.integers(0, 8),
        st.sampled_from(CLASSES),
    )
    return st.lists(span, max_size=12)


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """Return one shared engine with the macros."""
    return engine_with(MACROS)


@pytest.fixture(scope="module", autouse=True)
def _closed_at_the_end() -> Iterator[None]:
    yield
    connection().close()
    connection.cache_clear()


def ask(macro: str, lane_kind: str, *relations: Iterable[Span]) -> list[Row]:
    """Return the sorted rows of a macro call with one or two relations of intervals."""
    con = connection()
    names = ["left_spans", "right_spans"][: len(relations)]
    for name, spans in zip(names, relations, strict=True):
        rows = list(spans)
        columns = {
            "lane": pa.array([s.lane for s in rows], LANES[lane_kind][0]),
            "ts": pa.array([s.ts for s in rows], pa.int64()),
            "dur": pa.array([s.dur for s in rows], pa.int64()),
            "class": pa.array([s.kind for s in rows], pa.string()),
        }
        con.register(name, pa.table(columns))
    call = ", ".join(repr(name) for name in names)
    return canonical(con.execute(f"FROM lib.{macro}({call})").fetchall())


def canonical(rows: Iterable[Row]) -> list[Row]:
    """Sort rows by their representation, because Python cannot order NULL or struct lanes."""
    return sorted(((repr(row[0]), *row[1:]) for row in rows), key=repr)


def by_lane(spans: Iterable[Span]) -> list[tuple[Any, list[Span]]]:
    """Group intervals by lane; NULL is a lane like any other."""
    lanes: dict[str, tuple[Any, list[Span]]] = {}
    for span in spans:
        lanes.setdefault(repr(span.lane), (span.lane, []))[1].append(span)
    return list(lanes.values())


def touch(a: Span, b: Span) -> bool:
    """Return whether two closed intervals have a point in common."""
    return a.ts <= b.end and b.ts <= a.end


def merged_twin(spans: list[Span]) -> list[Row]:
    """Merge any two intervals that touch until no two of them do."""
    rows: list[Row] = []
    for lane, members in by_lane(spans):
        islands = [(span, 1) for span in members]
        while True:
            pairs = ((a, b) for a in islands for b in islands if a is not b and touch(a[0], b[0]))
            found = next(pairs, None)
            if found is None:
                break
            (a, m), (b, n) = found
            start, end = min(a.ts, b.ts), max(a.end, b.end)
            islands = [i for i in islands if i is not found[0] and i is not found[1]]
            islands.append((Span(lane, start, end - start), m + n))
        rows += [(lane, span.ts, span.dur, count) for span, count in islands]
    return canonical(rows)


def gaps_twin(spans: list[Span]) -> list[Row]:
    """Return each pair of an end and a later start that has no interval between them."""
    rows: list[Row] = []
    for lane, members in by_lane(spans):
        pairs = {(a.end, b.ts) for a in members for b in members if a.end < b.ts}
        rows += [
            (lane, end, start - end)
            for end, start in pairs
            if all(span.end <= end or span.ts >= start for span in members)
        ]
    return canonical(rows)


def cells(spans: Iterable[Span]) -> set[int]:
    """Return the unit cells [n, n + 1) that the intervals cover."""
    return {cell for span in spans for cell in range(span.ts, span.end)}


def intersected_twin(left: list[Span], right: list[Span]) -> list[Row]:
    """Return the time that both sides cover, as merged unit cells."""
    rows: list[Row] = []
    for lane, _ in by_lane([*left, *right]):
        sides = ([s for s in side if repr(s.lane) == repr(lane)] for side in (left, right))
        both = sorted(set.intersection(*(cells(side) for side in sides)))
        starts = [cell for cell in both if cell - 1 not in both]
        ends = [cell + 1 for cell in both if cell + 1 not in both]
        rows += [(lane, a, b - a) for a, b in zip(starts, ends, strict=True)]
    return canonical(rows)


def bounds(spans: list[Span]) -> list[int]:
    """Return the distinct starts and ends in sorted order."""
    return sorted({s.ts for s in spans} | {s.end for s in spans})


def covering(spans: Iterable[Span], start: int, end: int) -> list[Span]:
    """Return the intervals that cover the whole segment."""
    return [s for s in spans if s.ts <= start and s.end >= end]


def depth_twin(spans: list[Span]) -> list[Row]:
    """Count the intervals that cover each segment between two consecutive bounds."""
    return canonical(
        (lane, start, end - start, len(covering(members, start, end)))
        for lane, members in by_lane(spans)
        for start, end in pairwise(bounds(members))
    )


def classes_twin(spans: list[Span]) -> list[Row]:
    """Return the classes of the intervals that cover each segment.

    An empty segment follows at the last end.
    """
    rows: list[Row] = []
    for lane, members in by_lane(spans):
        for start, end in pairwise(bounds(members)):
            running = {s.kind for s in covering(members, start, end)}
            rows.append((lane, start, end - start, *(kind in running for kind in CLASSES[:3])))
        rows.append((lane, bounds(members)[-1], 0, False, False, False))
    return canonical(rows)


both_lanes = pytest.mark.parametrize("lanes", list(LANES))
many = settings(max_examples=examples(30), deadline=None)


@both_lanes
@given(data=st.data())
@many
def test_merged_intervals_is_the_union(lanes: str, data: st.DataObject) -> None:
    """Touching intervals become one island, with the number of its intervals."""
    spans = data.draw(spans_of(lanes))
    assert ask("merged_intervals", lanes, spans) == merged_twin(spans)


@both_lanes
@given(data=st.data())
@many
def test_gaps_are_the_time_without_any_interval(lanes: str, data: st.DataObject) -> None:
    """A gap extends from an end to the next start, and no interval touches its interior."""
    spans = data.draw(spans_of(lanes))
    assert ask("gaps", lanes, spans) == gaps_twin(spans)


@both_lanes
@given(data=st.data())
@many
def test_intersected_intervals_run_on_both_sides(lanes: str, data: st.DataObject) -> None:
    """The time common to both sides is returned for each lane as merged intervals."""
    left, right = data.draw(spans_of(lanes)), data.draw(spans_of(lanes))
    assert ask("intersected_intervals", lanes, left, right) == intersected_twin(left, right)


@both_lanes
@given(data=st.data())
@many
def test_overlap_depth_counts_what_runs(lanes: str, data: st.DataObject) -> None:
    """Each segment between two consecutive bounds has the number of intervals that cover it."""
    spans = data.draw(spans_of(lanes))
    assert ask("overlap_depth", lanes, spans) == depth_twin(spans)


@both_lanes
@given(data=st.data())
@many
def test_class_segments_know_the_classes_that_run(lanes: str, data: st.DataObject) -> None:
    """Each segment has the classes of the intervals that cover it, without synchronizations."""
    spans = data.draw(spans_of(lanes))
    assert ask("class_segments", lanes, spans) == classes_twin(spans)


@pytest.mark.parametrize("macro", [m for m in MACROS if m != "intersected_intervals"])
@given(data=st.data())
@settings(max_examples=examples(40), deadline=None)
def test_the_order_of_the_input_does_not_matter(macro: str, data: st.DataObject) -> None:
    """The order of the input rows does not change the result."""
    spans = data.draw(spans_of("number"))
    shuffled = data.draw(st.permutations(spans))
    assert ask(macro, "number", spans) == ask(macro, "number", shuffled)


@given(spans_of("number"), spans_of("number"))
@settings(max_examples=examples(60), deadline=None)
def test_intersection_does_not_prefer_a_side(left: list[Span], right: list[Span]) -> None:
    """Swapping the two sides does not change the intersection."""
    there = ask("intersected_intervals", "number", left, right)
    assert there == ask("intersected_intervals", "number", right, left)


@given(spans_of("number"))
@many
def test_merging_twice_is_merging_once(spans: list[Span]) -> None:
    """Islands do not touch each other, and each interval is in exactly one of them."""
    once = ask("merged_intervals", "number", spans)
    islands = [Span(None if lane == "None" else int(lane), ts, dur) for lane, ts, dur, _ in once]
    twice = ask("merged_intervals", "number", islands)
    assert [row[:3] for row in twice] == [row[:3] for row in once]
    assert sum(row[3] for row in once) == len(spans)


@given(spans_of("number"))
@many
def test_islands_and_gaps_make_up_the_hull(spans: list[Span]) -> None:
    """Islands and gaps add up to the time from the first start to the last end."""
    total: Counter[str] = Counter()
    for lane, _, dur, *_ in [
        *ask("merged_intervals", "number", spans),
        *ask("gaps", "number", spans),
    ]:
        total[lane] += dur
    for lane, members in by_lane(spans):
        hull = max(s.end for s in members) - min(s.ts for s in members)
        assert total[repr(lane)] == hull


@given(spans_of("number"))
@many
def test_depth_times_length_is_the_sum_of_durations(spans: list[Span]) -> None:
    """Depth times length, summed over all segments, equals the sum of all durations."""
    rows = ask("overlap_depth", "number", spans)
    assert sum(dur * depth for _, _, dur, depth in rows) == sum(s.dur for s in spans)


def test_touching_nested_and_repeated_intervals_are_one_island() -> None:
    """Touching, nested and repeated intervals form one island.

    [0, 5) twice, [1, 2) inside it and [5, 9) after it make [0, 9). [10, 11) is separate.
    """
    spans = [Span(1, 0, 5), Span(1, 0, 5), Span(1, 1, 1), Span(1, 5, 4), Span(1, 10, 1)]
    assert ask("merged_intervals", "number", spans) == [("1", 0, 9, 4), ("1", 10, 1, 1)]
    assert ask("gaps", "number", spans) == [("1", 9, 1)]


def test_absolute_nanoseconds_are_exact() -> None:
    """Unix times in nanoseconds, which have 19 digits, stay exact."""
    now = 1_750_000_000_123_456_789
    spans = [Span(1, now, 1), Span(1, now + 2, 1)]
    assert ask("gaps", "number", spans) == [("1", now + 1, 1)]
    assert ask("overlap_depth", "number", spans)[0] == ("1", now, 1, 1)
