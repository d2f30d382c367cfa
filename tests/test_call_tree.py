"""The call tree matches its definition and HTA's examples, also for very deep stacks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta_sql.ingestion.call_tree import (
    ANNOTATION,
    FRAME,
    KNOWN_STACKS,
    MEMORY_EVENT,
    MODULE_CALL,
    OPERATOR,
    Step,
    call_tree,
    depths_and_paths,
    enclosing_events,
    nearest_ancestor,
)
from hta_sql.ingestion.native import native_batch, native_call_tree
from tests.examples import examples

RUNTIME_CALL = 1


class Event(NamedTuple):
    """A host event; a memory event has no duration and no children."""

    thread: int
    ts: int
    dur: int
    kind: int = OPERATOR
    name: int = 0
    is_backward: bool = False

    @property
    def end(self) -> int:
        """Return the end of the event."""
        return self.ts + self.dur


def depths(parent: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return only the depths from ``depths_and_paths``."""
    return depths_and_paths(parent, np.zeros(len(parent), dtype=np.uint64))[0]


def opening_order(events: list[Event]) -> list[tuple[int, Event]]:
    """Sort events like link/host_events.sql: by thread, start, longest first, event order."""

    def key(numbered: tuple[int, Event]) -> tuple[int, int, int, int]:
        number, event = numbered
        return event.thread, event.ts, 1 if event.kind == MEMORY_EVENT else -event.dur, number

    return sorted(enumerate(events), key=key)


def columns(
    ordered: list[tuple[int, Event]],
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]:
    """Return the thread, start and end of all events as arrays."""
    return tuple(
        np.array(values, dtype=np.int64)
        for values in (
            [e.thread for _, e in ordered],
            [e.ts for _, e in ordered],
            [e.end for _, e in ordered],
        )
    )


def parent_by_definition(ordered: list[tuple[int, Event]], position: int) -> int:
    """Return the latest-starting event of the same thread that encloses an event.

    This is a linear search; -1 means that no event encloses it.
    """
    child = ordered[position][1]
    enclosing = [
        earlier
        for earlier in range(position)
        if ordered[earlier][1].thread == child.thread and ordered[earlier][1].end >= child.end
    ]
    return enclosing[-1] if enclosing else -1


def overlaps_by_definition(ordered: list[tuple[int, Event]], position: int, parent: int) -> bool:
    """Return whether an event partly overlaps an event that started after its parent.

    The earlier event still runs when the other one starts, but ends before it.
    """
    child = ordered[position][1]
    return any(
        event.thread == child.thread and event.ts < child.ts < event.end < child.end
        for _, event in ordered[parent + 1 : position]
    )


def tree_of(events: list[Event]) -> tuple[list[int], list[int]]:
    """Return the parent and the depth of each event, by event number."""
    ordered = opening_order(events)
    parent, _ = enclosing_events(*columns(ordered))
    depth = depths(parent)
    number = [number for number, _ in ordered]
    parents, levels = [-1] * len(events), [0] * len(events)
    for position, own in enumerate(number):
        parents[own] = number[parent[position]] if parent[position] >= 0 else -1
        levels[own] = int(depth[position])
    return parents, levels


spans = st.lists(
    st.builds(Event, st.integers(1, 2), st.integers(0, 12), st.integers(0, 10)), max_size=14
)
numbers, times, lengths = st.integers(1, 2), st.integers(0, 12), st.integers(0, 10)
names, others = st.integers(0, 2), st.sampled_from([RUNTIME_CALL, ANNOTATION, MODULE_CALL, FRAME])
with_kinds = st.lists(
    st.one_of(
        st.builds(Event, numbers, times, lengths, others, names, st.just(value=False)),
        st.builds(Event, numbers, times, lengths, st.just(OPERATOR), names, st.booleans()),
        st.builds(Event, numbers, times, *map(st.just, (0, MEMORY_EVENT, 0, False))),
    ),
    max_size=14,
)


@given(spans)
@settings(max_examples=examples(500), deadline=None)
def test_the_parent_is_the_latest_started_event_that_encloses(events: list[Event]) -> None:
    """Parents match their definition for random events that nest, touch or overlap."""
    ordered = opening_order(events)
    parent, overlaps = enclosing_events(*columns(ordered))
    wanted = [parent_by_definition(ordered, position) for position in range(len(ordered))]
    assert parent.tolist() == wanted
    assert overlaps.tolist() == [
        overlaps_by_definition(ordered, position, wanted[position])
        for position in range(len(ordered))
    ]


@given(spans, st.data())
@settings(max_examples=examples(300), deadline=None)
def test_depth_and_ancestors_follow_from_the_parents(
    events: list[Event], data: st.DataObject
) -> None:
    """Depth is the distance to the root, and the nearest ancestor is the first marked one."""
    ordered = opening_order(events)
    parent, _ = enclosing_events(*columns(ordered))
    size = len(ordered)
    wanted = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    paths: list[list[int]] = []
    for position in range(size):
        above = int(parent[position])
        paths.append([above, *paths[above]] if above >= 0 else [])
    nearest = [next((above for above in path if wanted[above]), -1) for path in paths]
    assert depths(parent).tolist() == [len(path) for path in paths]
    assert nearest_ancestor(parent, np.array(wanted, dtype=np.bool_)).tolist() == nearest


NAME_HASHES = (0x5851F42D4C957F2D, 0xD1342543DE82EF95, 0x2545F4914F6CDD1D)


def rows_of(
    ordered: list[tuple[int, Event]],
    cuts: list[int],
    steps: Sequence[Step] = (),
    known_stacks: int = KNOWN_STACKS,
) -> list[dict[str, Any]]:
    """Return the table rows for events that arrive in batches.

    Assert that the compiled library, if available, returns the same batches.
    """
    thread, ts, end = columns(ordered)
    events = pa.record_batch(
        {
            "thread": pa.array(thread, pa.int32()),
            "ts": ts,
            "end_ts": end,
            "event_id": pa.array([100 + number for number, _ in ordered], pa.int64()),
            "kind": pa.array([event.kind for _, event in ordered], pa.int8()),
            "is_backward": pa.array([int(event.is_backward) for _, event in ordered], pa.int8()),
            "name_hash": pa.array([NAME_HASHES[event.name] for _, event in ordered], pa.uint64()),
        }
    )
    edges = pairwise(sorted({0, len(ordered), *cuts}))
    batches = [events.slice(start, end - start) for start, end in edges]
    tree = list(call_tree(batches, steps, known_stacks=known_stacks))
    if native_batch() is not None:
        assert list(native_call_tree(batches, steps, known_stacks=known_stacks)) == tree
    return [row for batch in tree for row in batch.to_pylist()]


@given(with_kinds, st.data())
@settings(max_examples=examples(300), deadline=None)
def test_batches_do_not_show_in_the_tree(events: list[Event], data: st.DataObject) -> None:
    """The rows do not depend on where the batches end."""
    ordered = opening_order(events)
    cuts = data.draw(st.lists(st.integers(0, len(ordered)), max_size=5))
    assert rows_of(ordered, cuts) == rows_of(ordered, [])


def ancestors(ordered: list[tuple[int, Event]], position: int) -> list[int]:
    """Return the enclosing events, nearest first; memory events do not enclose anything."""
    path: list[int] = []
    end_of = ordered[position][1].end
    for earlier in reversed(range(position)):
        event = ordered[earlier][1]
        is_solid = event.kind != MEMORY_EVENT and event.thread == ordered[position][1].thread
        if is_solid and event.end >= end_of:
            path.append(earlier)
            end_of = event.end
    return path


@given(with_kinds)
@settings(max_examples=examples(300), deadline=None)
def test_the_table_names_the_nearest_of_each_kind(events: list[Event]) -> None:
    """Each row has the ids of the nearest ancestors by kind; memory events are never ancestors."""
    ordered = opening_order(events)
    table = rows_of(ordered, [])
    assert [row["event_id"] for row in table] == [100 + number for number, _ in ordered]
    for position, row in enumerate(table):
        path = ancestors(ordered, position)
        ids = {
            "parent_id": path[:1],
            "op_id": [p for p in path if ordered[p][1].kind == OPERATOR],
            "annotation_id": [p for p in path if ordered[p][1].kind == ANNOTATION],
            "module_id": [p for p in path if ordered[p][1].kind == MODULE_CALL],
            "frame_id": [p for p in path if ordered[p][1].kind in (MODULE_CALL, FRAME)],
            "bwd_op_id": [p for p in (position, *path) if ordered[p][1].is_backward],
        }
        for name, found in ids.items():
            assert row[name] == (100 + ordered[found[0]][0] if found else None)
        assert row["depth"] == len(path)


def names_of(ordered: list[tuple[int, Event]], position: int) -> list[tuple[int, int]]:
    """Return the kind and name of each event in a stack, outermost first.

    The stack ends with the event itself, unless it is a memory event.
    """
    is_memory = ordered[position][1].kind == MEMORY_EVENT
    chain = [*([] if is_memory else [position]), *ancestors(ordered, position)]
    return [(ordered[p][1].kind, ordered[p][1].name) for p in reversed(chain)]


@given(with_kinds)
@settings(max_examples=examples(100), deadline=None)
def test_one_stack_one_id(events: list[Event]) -> None:
    """The id of a stack is that of the first event with the same stack, in opening order."""
    ordered = opening_order(events)
    first: dict[tuple[tuple[int, int], ...], int] = {}
    for position, row in enumerate(rows_of(ordered, [])):
        names = tuple(names_of(ordered, position))
        if names:
            assert row["stack_id"] == first.setdefault(names, row["event_id"])
        else:  # a memory event that nothing encloses
            assert row["stack_id"] is None


@given(with_kinds, st.data())
@settings(max_examples=examples(100), deadline=None)
def test_stacks_that_are_forgotten(events: list[Event], data: st.DataObject) -> None:
    """An evicted stack may get a second id, but each id still identifies a single stack."""
    ordered = opening_order(events)
    cuts = data.draw(st.lists(st.integers(0, len(ordered)), max_size=5))
    rows = rows_of(ordered, cuts, known_stacks=0)
    stacks = {row["event_id"]: names_of(ordered, position) for position, row in enumerate(rows)}
    own = {row["event_id"]: row["stack_id"] for row in rows}
    for event_id, stack_id in own.items():
        if stack_id is not None:
            assert stacks[event_id] == stacks[stack_id]
            assert own[stack_id] == stack_id


@given(with_kinds, st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4))
@settings(max_examples=examples(300), deadline=None)
def test_the_step_is_the_one_that_it_starts_in(
    events: list[Event], shape: list[tuple[int, int]]
) -> None:
    """An event belongs to the step in which it starts, and a step excludes its end time."""
    steps: list[Step] = []
    for number, (gap, length) in enumerate(shape):
        start = (steps[-1][1] if steps else 0) + gap
        steps.append((start, start + length + 1, 10 - number))
    ordered = opening_order(events)
    for (_, event), row in zip(ordered, rows_of(ordered, [len(events) // 2], steps), strict=True):
        inside = [number for start, end, number in steps if start <= event.ts < end]
        assert row["step"] == (inside[0] if inside else None)


# HTA's examples: starts, durations, parents by event number.
HTA_EXAMPLES = {
    "a stack of four levels": (
        [0, 1, 3, 3, 7, 8, 10, 12],
        [10, 5, 2, 1, 3, 1, 11, 6],
        [-1, 0, 1, 2, 0, 4, -1, 6],
    ),
    "equal starts nest by length, touching events are siblings": (
        [0, 0, 5, 5],
        [10, 5, 1, 5],
        [-1, 0, 3, 0],
    ),
    "events of no length lie inside at either edge": (
        [0, 0, 4, 5],
        [0, 5, 0, 0],
        [1, -1, 1, 1],
    ),
    "events of no length at one instant nest in order": (
        [55, 61, 62, 85, 86, 86, 90, 91],
        [0, 15, 0, 1, 0, 0, 225181, 0],
        [-1, -1, 1, -1, 3, 4, -1, 6],
    ),
}


@pytest.mark.parametrize("example", list(HTA_EXAMPLES))
def test_the_examples_of_hta(example: str) -> None:
    """Ties between events are resolved as in HTA's examples."""
    starts, durations, parents = HTA_EXAMPLES[example]
    events = [Event(1, ts, dur) for ts, dur in zip(starts, durations, strict=True)]
    assert tree_of(events)[0] == parents


def test_depths_of_a_stack() -> None:
    """The root of a stack has depth 0, and each level below adds 1."""
    starts, durations, _ = HTA_EXAMPLES["a stack of four levels"]
    events = [Event(1, ts, dur) for ts, dur in zip(starts, durations, strict=True)]
    assert tree_of(events)[1] == [0, 1, 2, 3, 1, 2, 0, 1]


def test_what_only_overlaps_does_not_enclose() -> None:
    """An event that only overlaps another is not its child.

    [16, 19) starts in [12, 18) and ends later. HTA makes it a child of [12, 18); here, its parent
    is [10, 21), which encloses it.
    """
    ordered = opening_order([Event(1, 10, 11), Event(1, 12, 6), Event(1, 16, 3)])
    parent, overlaps = enclosing_events(*columns(ordered))
    assert parent.tolist() == [-1, 0, 0]
    assert overlaps.tolist() == [False, False, True]


def test_an_overlap_is_flagged_and_keeps_its_place() -> None:
    """An event that partly overlaps another is flagged as its sibling and may have children.

    [2, 8) starts inside [0, 5) and ends after it.
    """
    ordered = opening_order([Event(1, 0, 5), Event(1, 2, 6), Event(1, 3, 1)])
    parent, overlaps = enclosing_events(*columns(ordered))
    assert parent.tolist() == [-1, -1, 1]
    assert overlaps.tolist() == [False, True, False]


def test_threads_do_not_see_each_other() -> None:
    """Each thread has a separate tree, even if the event times are equal."""
    assert tree_of([Event(1, 0, 10), Event(2, 1, 2)]) == ([-1, -1], [0, 0])


def test_no_events_no_tree() -> None:
    """A trace without host events has an empty tree."""
    assert tree_of([]) == ([], [])


SIZE = 10_000
SHAPES = {
    "deep": [Event(1, n, 3 * SIZE - 2 * n) for n in range(SIZE)],
    "flat": [Event(1, 0, 10 * SIZE), *(Event(1, 2 * n, 1) for n in range(SIZE))],
    "staircase of overlaps": [Event(1, n, SIZE) for n in range(SIZE)],
    "deep, then many short ones at the bottom": [
        *(Event(1, n, 5 * SIZE - 2 * n) for n in range(SIZE)),
        *(Event(1, SIZE + n, 1) for n in range(SIZE)),
    ],
}


@pytest.mark.parametrize("shape", list(SHAPES))
def test_ten_thousand_levels_are_no_problem(shape: str) -> None:
    """The tree is built without recursion and in less than quadratic time, whatever its shape."""
    ordered = opening_order(SHAPES[shape])
    arrays = columns(ordered)
    started = time.perf_counter()
    parent, _ = enclosing_events(*arrays)
    depth = depths(parent)
    nearest_ancestor(parent, depth == 0)
    assert time.perf_counter() - started < 2
    assert depth.max() == {"deep": SIZE - 1, "flat": 1}.get(shape, depth.max())
