"""The call tree by the compiled library: what :mod:`hta_sql.ingestion.call_tree` defines, in one pass.

An accelerator as the compiled reader is, in the same library: where that is not there, or left out,
the definition builds the tree.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from hta_sql.ingestion.call_tree import CALL_TREE_SCHEMA, KNOWN_STACKS, Build, Step, call_tree
from hta_sql.traces.compiled import load_functions, reader_at_work

_TAKEN = {
    "thread": pa.int32(),
    "ts": pa.int64(),
    "end_ts": pa.int64(),
    "event_id": pa.int64(),
    "kind": pa.int8(),
    "is_backward": pa.int8(),
    "name_hash": pa.uint64(),
}
_IDS = (
    *("parent_id", "op_id", "annotation_id", "module_id", "frame_id"),
    *("bwd_op_id", "stack_id", "step"),
)
"""In the order of native/src/tree.rs."""


class _HostEvents(ctypes.Structure):
    _fields_ = (("rows", ctypes.c_size_t), *((name, ctypes.c_void_p) for name in _TAKEN))


class _CallTree(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_void_p) for name in ("ids", "bits", "depth"))


@cache
def _library() -> ctypes.CDLL | None:
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    events, tree = ctypes.POINTER(_HostEvents), ctypes.POINTER(_CallTree)
    return load_functions(
        (
            ("tree_new", pointer, pointer, size, size),
            ("tree_add", ctypes.c_bool, pointer, events, tree),
            ("tree_free", None, pointer),
        )
    )


def best_build() -> Build:
    """Return what builds call trees here: the compiled library, where it is at work."""
    is_there = reader_at_work() == "compiled" and _library() is not None
    return native_call_tree if is_there else call_tree


def native_call_tree(
    host_events: Iterable[pa.RecordBatch],
    steps: Sequence[Step] = (),
    *,
    known_stacks: int = KNOWN_STACKS,
) -> Iterator[pa.RecordBatch]:
    """Build the call tree of one rank, batch by batch; see :func:`call_tree`."""
    library = _library()
    if library is None:
        raise RuntimeError("the compiled library is not here")
    windows = np.array(steps, dtype=np.int64).reshape(-1, 3)
    tree = library.hta_sql_tree_new(windows.ctypes.data, len(windows), known_stacks)
    try:
        for batch in host_events:
            yield _added(library, tree, batch)
    finally:
        library.hta_sql_tree_free(tree)


def _added(library: ctypes.CDLL, tree: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Place a batch in the tree; returns its rows, whose buffers the library has filled."""
    rows = batch.num_rows
    events = _HostEvents(rows, *(_address(batch, name) for name in _TAKEN))
    ids = np.empty((len(_IDS), rows), dtype=np.int64)
    bits = np.zeros((len(_IDS) + 1, -(-rows // 8)), dtype=np.uint8)
    depth = np.empty(rows, dtype=np.int32)
    into = _CallTree(ids.ctypes.data, bits.ctypes.data, depth.ctypes.data)
    if not library.hta_sql_tree_add(tree, ctypes.byref(events), ctypes.byref(into)):
        raise RuntimeError("the compiled library failed to build a call tree")
    made = {
        name: pa.Array.from_buffers(pa.int64(), rows, [pa.py_buffer(valid), pa.py_buffer(column)])
        for name, valid, column in zip(_IDS, bits, ids, strict=False)
    }
    made["event_id"], made["kind"] = batch.column("event_id"), batch.column("kind")
    made["depth"] = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(depth)])
    made["overlaps"] = pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(bits[-1])])
    return pa.RecordBatch.from_arrays(
        [made[name] for name in CALL_TREE_SCHEMA.names], schema=CALL_TREE_SCHEMA
    )


def _address(batch: pa.RecordBatch, name: str) -> int:
    """Say where the values of a column begin, which has no NULL."""
    column, kind = batch.column(name), _TAKEN[name]
    if column.type != kind or column.null_count:
        raise TypeError(f"{name} is {column.type} with {column.null_count} NULL, not {kind}")
    return int(column.buffers()[1].address + column.offset * kind.bit_width // 8)
