"""Call tree of a host thread: exact parents, depths, nearest ancestors and stacks.

The parent of an event is the latest-started event of its thread that encloses it. With events
ordered by start (longer first on ties), that is the nearest earlier event that ends no sooner: the
classical "previous greater element". A +1/-1 running sum in SQL is wrong for partial overlaps,
which real traces have (2,138 of 192 k host events on one MI300X trace). A Python stack loop costs
ten times as much as these array operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

IntArray = npt.NDArray[np.int64]
HashArray = npt.NDArray[np.uint64]
BoolArray = npt.NDArray[np.bool_]

OPERATOR, ANNOTATION, MODULE_CALL, FRAME, MEMORY_EVENT = 0, 2, 4, 5, 6
"""Kinds of events in sql/ingest/link/call_tree.sql for which ancestors are looked up."""

PART_BITS = 40
"""Number of bits of an event id below the number of the trace, for traces that are read together.

See sql/ingest/ids.sql.
"""

KNOWN_STACKS = 1 << 18
"""Maximum number of stacks to remember (50 MB); a rank with more may store duplicate stacks."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
"""Multiplier of a path's hash per level; odd, so that no information is lost."""


def enclosing_events(
    thread: npt.NDArray[Any], start: IntArray, end: IntArray
) -> tuple[IntArray, BoolArray]:
    """Return the parent of each event.

    Args:
        thread: Thread of each event; equal values are contiguous.
        start: Start of each event [ns]; ascending inside a thread, and on equal
            starts the longer event comes first.
        end: End of each event [ns].

    Returns:
        The position of the parent (-1: none), and whether the event starts
        inside an earlier one but ends after it (a partial overlap).
    """
    count = len(end)
    parent = np.arange(-1, count - 1, dtype=np.int64)
    overlaps = np.zeros(count, dtype=np.bool_)
    if count == 0:
        return parent, overlaps
    parent[np.flatnonzero(thread[1:] != thread[:-1]) + 1] = -1
    open_rows = np.flatnonzero(parent >= 0)
    # Invariant: every event between parent[i] and i ends before i does, so a candidate that ends
    # too soon can be replaced by its own candidate.
    while len(open_rows):
        candidate = parent[open_rows]
        too_short = end[candidate] < end[open_rows]
        open_rows, candidate = open_rows[too_short], candidate[too_short]
        overlaps[open_rows] |= (end[candidate] > start[open_rows]) & (
            start[candidate] < start[open_rows]
        )
        parent[open_rows] = parent[candidate]
        open_rows = open_rows[parent[open_rows] >= 0]
    return parent, overlaps


def depths_and_paths(parent: IntArray, names: HashArray) -> tuple[IntArray, HashArray]:
    """Return the depth of each event, and a hash of the names from its outermost ancestor down.

    The number of rounds is logarithmic in the depth: each round joins paths that end where others
    begin.

    Args:
        parent: Position of each event's parent (-1: none).
        names: Hash of each event's own name.
    """
    depth = (parent >= 0).astype(np.int64)
    path, above = names.copy(), parent.copy()
    weight = np.full(len(parent) + 1, _STEP)
    weight[0] = 1
    weight = np.multiply.accumulate(weight)
    rows = np.flatnonzero(above >= 0)
    while len(rows):
        hop, below = above[rows], depth[rows]
        # Read before write: all rows of a round start from the same state.
        path[rows] += weight[below] * path[hop]
        depth[rows], above[rows] = below + depth[hop], above[hop]
        rows = rows[above[rows] >= 0]
    return depth, path


def nearest_ancestor(parent: IntArray, wanted: BoolArray) -> IntArray:
    """Return the nearest proper ancestor that the mask selects (-1: none)."""
    if not wanted.any():
        return np.full_like(parent, -1)
    found = parent.copy()
    rows = np.flatnonzero((found >= 0) & ~wanted[found])
    while len(rows):
        found[rows] = found[found[rows]]
        rows = rows[(found[rows] >= 0) & ~wanted[found[rows]]]
    return found


CALL_TREE_SCHEMA = pa.schema(
    [
        ("event_id", pa.int64()),
        ("kind", pa.int8()),
        ("parent_id", pa.int64()),
        ("depth", pa.int32()),
        ("overlaps", pa.bool_()),
        ("op_id", pa.int64()),
        ("annotation_id", pa.int64()),
        ("module_id", pa.int64()),
        ("frame_id", pa.int64()),
        ("bwd_op_id", pa.int64()),
        ("stack_id", pa.int64()),
        ("step", pa.int64()),
    ]
)

Step = tuple[int, int, int]
"""Start [ns], end [ns] and number of a profiler step."""


def call_tree(
    host_events: Iterable[pa.RecordBatch],
    steps: Sequence[Step] = (),
    *,
    known_stacks: int = KNOWN_STACKS,
) -> Iterator[pa.RecordBatch]:
    """Build the call tree of one rank, batch by batch.

    Memory is limited to one batch and the known stacks. Later events can only be inside the events
    that enclose the last one, so only these are carried over to the next batch.

    Args:
        host_events: thread, ts, end_ts, event_id, kind, is_backward, name_hash in the order of
            sql/ingest/link/call_tree.sql.
        steps: The steps of sql/ingest/link/steps.sql, which do not overlap.
        known_stacks: Maximum number of stacks to remember.

    Yields:
        One row per host event: event_id, kind, parent_id, depth, overlaps; the nearest enclosing
        op_id, annotation_id, module_id and frame_id; the backward operator that it is or runs in;
        the first event with the same stack of names (for a memory event, that of its parent); and
        the step that it starts in (NULL: none).
    """
    windows = np.array(steps, dtype=np.int64).reshape(-1, 3)
    still_open: dict[str, npt.NDArray[Any]] = {}
    stacks: dict[int, int] = {}
    for batch in host_events:
        column = {name: _numpy(batch.column(name)) for name in batch.schema.names}
        if still_open:
            column = {n: np.concatenate((still_open[n], values)) for n, values in column.items()}
        carried = len(column["ts"]) - batch.num_rows
        parent, overlaps = enclosing_events(column["thread"], column["ts"], column["end_ts"])
        chain = [len(parent) - 1]
        while (above := int(parent[chain[-1]])) >= 0:
            chain.append(above)
        is_memory = column["kind"] == MEMORY_EVENT
        # Memory events are leaves: two at the same time do not enclose each other.
        parent = np.where(is_memory, nearest_ancestor(parent, ~is_memory), parent)
        # An operator and an annotation with the same name are different.
        names: HashArray = np.bitwise_xor(column["name_hash"], column["kind"].astype(np.uint64))
        depth, path = depths_and_paths(parent, names)
        path = np.where(is_memory & (parent >= 0), path[parent], path)
        still_open = {name: values[chain[::-1]] for name, values in column.items()}
        stack = _first_events(path, column["event_id"], stacks)
        column |= {"overlaps": overlaps, "depth": depth, "stack": stack}
        yield _rows(column, parent, windows).slice(carried)
        if len(stacks) > known_stacks:
            stacks = dict(zip(path[chain].tolist(), stack[chain].tolist(), strict=True))


Build = Callable[[Iterable[pa.RecordBatch], Sequence[Step]], Iterator[pa.RecordBatch]]
"""A function that builds the call tree of one rank: :func:`call_tree`, or a faster equivalent."""


def call_trees(
    host_events: Iterable[pa.RecordBatch],
    steps: Sequence[tuple[int, int, int, int]] = (),
    build: Build = call_tree,
) -> Iterator[pa.RecordBatch]:
    """Build the call trees of traces that are read together, one after the other.

    Args:
        host_events: Input of :func:`call_tree`; an event's id contains the number of its trace.
        steps: The steps of sql/ingest/link/steps.sql, each preceded by the number of its trace.
        build: Function that builds each tree.
    """
    for part, batches in groupby(_by_part(host_events), key=itemgetter(0)):
        own = [step[1:] for step in steps if step[0] == part]
        yield from build((batch for _, batch in batches), own)


def _by_part(host_events: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in host_events:
        part = _numpy(batch.column("event_id")) >> PART_BITS
        start = 0
        for end in (*(np.flatnonzero(part[1:] != part[:-1]) + 1).tolist(), len(part)):
            if start < end:
                yield int(part[start]), batch.slice(start, end - start)
            start = end


def _first_events(path: HashArray, event_id: IntArray, known: dict[int, int]) -> IntArray:
    """Return, for each event, the first event with the same path, in this or an earlier batch."""
    # Looking up distinct paths costs half as much as looking up each event.
    distinct, place = np.unique(path, return_inverse=True)
    first = np.empty(len(distinct), dtype=np.int64)
    first[place[::-1]] = event_id[::-1]
    found = map(known.setdefault, distinct.tolist(), first.tolist())
    return np.fromiter(found, np.int64, len(distinct))[place]


def _rows(
    column: dict[str, npt.NDArray[Any]], parent: IntArray, windows: IntArray
) -> pa.RecordBatch:
    kind, event_id = column["kind"], column["event_id"]

    def ids(position: IntArray) -> pa.Array:
        return _arrow(event_id[position], pa.int64(), position >= 0)

    is_backward = column["is_backward"] != 0
    backward = np.where(is_backward, np.arange(len(kind)), nearest_ancestor(parent, is_backward))
    columns = [
        _arrow(event_id, pa.int64()),
        _arrow(kind, pa.int8()),
        ids(parent),
        _arrow(column["depth"].astype(np.int32), pa.int32()),
        pa.Array.from_buffers(pa.bool_(), len(kind), [None, _bits(column["overlaps"])]),
        ids(nearest_ancestor(parent, kind == OPERATOR)),
        ids(nearest_ancestor(parent, kind == ANNOTATION)),
        ids(nearest_ancestor(parent, kind == MODULE_CALL)),
        ids(nearest_ancestor(parent, (kind == FRAME) | (kind == MODULE_CALL))),
        ids(backward),
        _arrow(column["stack"], pa.int64(), (kind != MEMORY_EVENT) | (parent >= 0)),
        _steps(column["ts"], windows),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CALL_TREE_SCHEMA)


def _steps(ts: IntArray, windows: IntArray) -> pa.Array:
    """Return the step that each event starts in."""
    if not len(windows):
        return _arrow(np.zeros_like(ts), pa.int64(), np.zeros(len(ts), dtype=np.bool_))
    start, end, number = windows.T
    last = np.searchsorted(start, ts, side="right") - 1
    return _arrow(number[last], pa.int64(), (last >= 0) & (ts < end[last]))


def _numpy(values: pa.Array) -> npt.NDArray[Any]:
    """View integers without NULL as an array; to_numpy() would import pandas, see _arrow."""
    data = np.frombuffer(values.buffers()[1], np.dtype(str(values.type)))
    return data[values.offset : values.offset + len(values)]


def _arrow(
    values: npt.NDArray[Any], kind: pa.DataType, is_valid: BoolArray | None = None
) -> pa.Array:
    """Convert an array without a copy.

    Uses buffers instead of pa.array(), which imports pandas; that costs more than ingesting a small
    trace.
    """
    validity = None if is_valid is None else _bits(is_valid)
    buffers = [validity, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def _bits(flags: BoolArray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
