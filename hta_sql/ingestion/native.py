"""Compiled reader and call tree builder: stage chunks of text without SQL statements.

They are an optional accelerator. The reader rejects a chunk that contains anything unusual. Such a
chunk is read by the statements in sql/ingest, which define the result. The reader gets the known
arguments and categories from the same lists as those statements. :mod:`hta_sql.ingestion.call_tree`
defines the call tree, and builds it if the library is unavailable or disabled. The library is
written in Rust with only the standard library, so traces cannot cause out-of-bounds accesses. For
building it, see docs/native.md.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hta_sql.ingestion.call_tree import CALL_TREE_SCHEMA, KNOWN_STACKS, Build, Step, call_tree
from hta_sql.library.arguments import FIELDS, TRIPLE, Argument, Form, known_arguments
from hta_sql.library.vendors import category_tables
from hta_sql.traces.chunks import Chunk
from hta_sql.traces.compiled import load_functions, reader_at_work

CHUNK_BITS = 32
"""Bits of a chunk number below the number of the trace; see sql/ingest/parse/batch.sql."""

MOST_HELD = 24 << 20
"""Maximum size of a batch's columns [bytes].

The engine's memory limit does not include these columns, and growing them needs extra memory. A
batch costs 10 ms.
"""

REFUSALS = ("", "grammar", "key", "field", "argument", "time", "size", "panic")
"""Reasons for rejecting a chunk, indexed by the library's code."""

_EVENT = ("event_id", "ts", "dur", "pid", "tid", "name")
_WHOLE = {
    "flows": ("cat", "phase", "flow_id", "binding_point"),
    "counters": ("cat",),
    "other_events": ("cat", "phase", "flow_id", "scope"),
}
"""Tables whose arguments stay unparsed ─▶ fields in addition to the common fields."""

_NO_DURATION = ("flows", "counters")
_SERIES = (("series", "text"), ("value", "double"))
_FIELDS = (*_EVENT, "cat", "phase", "flow_id", "binding_point", "scope", "args")
"""Fields that may be stored, indexed by their column in the library."""

_JSON = {"ARROW:extension:name": "arrow.json", "ARROW:extension:metadata": ""}
_NAMES = pa.list_(pa.string())
_TYPES = {
    "integer": pa.int64(),
    "narrow": pa.int32(),
    "double": pa.float64(),
    "text": pa.string(),
    "triple": pa.list_(pa.int64()),
}

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
"""Columns with ids, in the order of native/src/tree.rs."""


class _Column(NamedTuple):
    """A column of a staged table: its index in the library, and how it is parsed."""

    name: str
    place: int
    kind: str


class _Parts(ctypes.Structure):
    _fields_ = (
        *(("valid", ctypes.c_void_p), ("valid_bytes", ctypes.c_size_t)),
        *(("wide", ctypes.c_void_p), ("wide_count", ctypes.c_size_t)),
        *(("narrow", ctypes.c_void_p), ("narrow_count", ctypes.c_size_t)),
        *(("text", ctypes.c_void_p), ("text_bytes", ctypes.c_size_t)),
        ("is_touched", ctypes.c_bool),
    )


@cache
def _library() -> ctypes.CDLL | None:
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    return load_functions(
        (
            ("reader_new", pointer, ctypes.c_char_p, size),
            ("reader_read", ctypes.c_int64, pointer, ctypes.c_char_p, size),
            ("reader_number", ctypes.c_bool, pointer, pointer, size),
            ("reader_size", size, pointer),
            ("reader_count", size, pointer, size, ctypes.c_bool),
            ("reader_column", ctypes.c_bool, pointer, size, size, ctypes.POINTER(_Parts)),
            ("reader_free", None, pointer),
        )
    )


def native_batch() -> NativeBatch | None:
    """Start a batch; None if the compiled reader is unavailable or disabled."""
    library = _library() if reader_at_work() == "compiled" else None
    return NativeBatch(library) if library else None


class NativeBatch:
    """The chunks of a batch as rows of the staged tables.

    Attributes:
        events: Chunk ─▶ number of its events, for chunks that were read.
        refused: Reason ─▶ number of rejected chunks.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self.events: dict[int, int] = {}
        self.refused: Counter[str] = Counter()
        self._library = library
        plan = _plan()
        self._reader = library.hta_sql_reader_new(plan, len(plan))
        if not self._reader:
            raise RuntimeError("the compiled reader cannot parse the plan")

    def __del__(self) -> None:
        """Free the columns, which no array references any longer."""
        self._library.hta_sql_reader_free(self._reader)

    def left(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Read chunks until the batch is full; yield the rejected chunks."""
        for chunk in chunks:
            if chunk.is_doubted or not self._is_read(chunk):
                yield chunk
            if self._library.hta_sql_reader_size(self._reader) > MOST_HELD:
                return

    def _is_read(self, chunk: Chunk) -> bool:
        count = self._library.hta_sql_reader_read(self._reader, chunk.text, len(chunk.text))
        if count < 0:
            self.refused[REFUSALS[-count]] += 1
            return False
        self.events[chunk.number] = count
        return True

    def counts(self) -> Counter[str]:
        """Return the number of events by table."""
        return +Counter(
            {
                table: self._library.hta_sql_reader_count(self._reader, place, False)
                for place, table in enumerate(_columns())
            }
        )

    def tables(self, first_ids: list[int]) -> dict[str, pa.Table]:
        """Return the rows of each table. Call once; no chunk can be read afterwards.

        Args:
            first_ids: Id of the first event of each chunk that was read, in order.
        """
        ids = (ctypes.c_int64 * len(first_ids))(*first_ids)
        if not self._library.hta_sql_reader_number(self._reader, ids, len(first_ids)):
            raise RuntimeError("the compiled reader read different chunks than expected")
        return {
            table: self._table(place, columns, is_typed=table in FIELDS)
            for place, (table, columns) in enumerate(_columns().items())
        }

    def _table(self, place: int, columns: list[_Column], *, is_typed: bool) -> pa.Table:
        rows = self._library.hta_sql_reader_count(self._reader, place, True)
        nothing = pa.py_buffer(bytes(8 * (rows + 1)))
        arrays = [self._array(place, column, rows, nothing) for column in columns]
        table = pa.Table.from_arrays(arrays, schema=_schema(columns))
        if not is_typed:
            return table
        # Chunks with arguments of a different form were rejected, so there are no odd arguments.
        none = pa.nulls(rows, _NAMES)
        return table.add_column(len(columns) - 1, "odd_arguments", none)

    def _array(self, table: int, column: _Column, rows: int, nothing: pa.Buffer) -> pa.Array:
        """Wrap a column without a copy; its buffers keep this batch and its memory alive."""
        parts = _Parts()
        self._library.hta_sql_reader_column(self._reader, table, column.place, ctypes.byref(parts))
        wide, narrow, text, valid = nothing, nothing, nothing, nothing
        if parts.is_touched:
            wide = self._buffer(parts.wide, 8 * parts.wide_count)
            narrow = self._buffer(parts.narrow, 4 * parts.narrow_count)
            text = self._buffer(parts.text, parts.text_bytes)
            valid = self._buffer(parts.valid, parts.valid_bytes) if parts.valid_bytes else None
        kind = _TYPES[column.kind]
        if column.kind == "triple":
            items = pa.Array.from_buffers(pa.int64(), parts.wide_count, [None, wide])
            return pa.Array.from_buffers(kind, rows, [valid, narrow], children=[items])
        if column.kind == "text":
            return pa.Array.from_buffers(kind, rows, [valid, narrow, text])
        return pa.Array.from_buffers(
            kind, rows, [valid, narrow if column.kind == "narrow" else wide]
        )

    def _buffer(self, address: int, size: int) -> pa.Buffer:
        return pa.foreign_buffer(address, size, self) if size else pa.py_buffer(b"")


def _schema(columns: list[_Column]) -> pa.Schema:
    return pa.schema(
        pa.field(c.name, _TYPES[c.kind], metadata=_JSON if c.name == "args" else None)
        for c in columns
    )


@cache
def _columns() -> dict[str, list[_Column]]:
    """Return the columns of each staged table, in the order of the statements of sql/ingest."""
    tables = {}
    for table in (*FIELDS, *_WHOLE):
        fields = (*_EVENT, *FIELDS.get(table, ()), *_WHOLE.get(table, ()))
        kept = [field for field in fields if field != "dur" or table not in _NO_DURATION]
        own = _own_columns(table)
        tables[table] = [
            *(_Column(field, _FIELDS.index(field), _kind_of_field(field)) for field in kept),
            *(_Column(name, len(_FIELDS) + n, kind) for n, (name, kind) in enumerate(own)),
            _Column("args", _FIELDS.index("args"), "text"),
        ]
    return tables


def _kind_of_field(field: str) -> str:
    return "integer" if field in ("event_id", "ts", "dur") else "text"


def _own_columns(table: str) -> list[tuple[str, str]]:
    if table == "counters":
        return list(_SERIES)
    return [(a.column, _kind(a)) for a in _arguments(table) if not a.categories]


def _arguments(table: str) -> list[Argument]:
    return [argument for argument in known_arguments() if table in argument.tables]


def _kind(argument: Argument) -> str:
    kinds = {"BIGINT": "integer", "INTEGER": "narrow", "DOUBLE": "double", TRIPLE: "triple"}
    return kinds.get(argument.type, "text")


def _checked_kind(form: Form, kind: str) -> str:
    """Return how the library parses an argument: by form if it has a pattern, else by kind."""
    return form.name if form.pattern else kind


@cache
def _plan() -> bytes:
    """Return the configuration of the library; its format is described in native/src/lib.rs."""
    lines: list[tuple[object, ...]] = []
    categories = sorted(category_tables().items(), key=lambda line: line[0].startswith("*"))
    bits = {category: 1 << n for n, (category, _) in enumerate(categories)}
    for table, columns in _columns().items():
        fields = " ".join(column.name for column in columns if column.place < len(_FIELDS))
        lines.append(("table", table, fields, "typed" if table in FIELDS else "whole"))
        own = [name for name, _ in _own_columns(table)]
        if table == "counters":
            lines += [
                ("argument", *one, 0, 0) for one in ((n, i, k) for i, (n, k) in enumerate(_SERIES))
            ]
            continue
        # Current names are in column order, followed by old spellings.
        for argument in sorted(_arguments(table), key=lambda one: bool(one.categories)):
            form = argument.form
            if form is None:
                continue
            kind = _checked_kind(form, _kind(argument))
            mask = sum(bits[category] for category in argument.categories)
            place = own.index(argument.column)
            lines.append(("argument", argument.name, place, kind, form.limit or 0, mask))
    lines += [("category", category, table) for category, table in categories]
    return "".join("\t".join(map(str, line)) + "\n" for line in lines).encode()


class _HostEvents(ctypes.Structure):
    _fields_ = (("rows", ctypes.c_size_t), *((name, ctypes.c_void_p) for name in _TAKEN))


class _CallTree(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_void_p) for name in ("ids", "bits", "depth"))


@cache
def _tree_library() -> ctypes.CDLL | None:
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
    """Return the function that builds call trees: the compiled function if it is available."""
    is_there = reader_at_work() == "compiled" and _tree_library() is not None
    return native_call_tree if is_there else call_tree


def native_call_tree(
    host_events: Iterable[pa.RecordBatch],
    steps: Sequence[Step] = (),
    *,
    known_stacks: int = KNOWN_STACKS,
) -> Iterator[pa.RecordBatch]:
    """Build the call tree of one rank, batch by batch; see :func:`call_tree`."""
    library = _tree_library()
    if library is None:
        raise RuntimeError("the compiled library is missing")
    windows = np.array(steps, dtype=np.int64).reshape(-1, 3)
    tree = library.hta_sql_tree_new(windows.ctypes.data, len(windows), known_stacks)
    try:
        for batch in host_events:
            yield _added(library, tree, batch)
    finally:
        library.hta_sql_tree_free(tree)


def _added(library: ctypes.CDLL, tree: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Add a batch to the tree; return its rows, whose buffers the library has filled."""
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
    """Return the address of the values of a column without NULL."""
    column, kind = batch.column(name), _TAKEN[name]
    if column.type != kind or column.null_count:
        raise TypeError(
            f"Column {name} must be {kind} without NULLs, but is {column.type} with {column.null_count} NULLs"
        )
    return int(column.buffers()[1].address + column.offset * kind.bit_width // 8)
