"""Convert results of ``trace_events`` to HTA's trace frame: columns, defaults and microseconds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable
from hta_sql.text import NS

_NUMBERS = {
    "pid": ("pid", -1),
    "tid": ("tid", -1),
    "stream": ("stream", -1),
    "correlation": ("correlation", -1),
    "bytes": ("bytes", -1),
    "wait_on_stream": ("wait_on_stream", -1),
    "wait_on_cuda_event_record_corr_id": ("wait_on_record_correlation", -1),
    "external_id": ("external_id", -1),
    "python_id": ("python_id", -1),
    "python_parent_id": ("python_parent_id", -1),
    "in_msg_nelems": ("in_elems_count", 0),
    "out_msg_nelems": ("out_elems_count", 0),
    "group_size": ("group_size_count", 0),
    "iteration": ("step", -1),
}
"""HTA's column ─▶ column of the analysis, and HTA's default for a missing value."""

_TEXTS = {
    "collective_name": ("collective", ""),
    "msg_dtype": ("elem_type", ""),
    "in_split_size": ("in_split_sizes", "[]"),
    "out_split_size": ("out_split_sizes", "[]"),
}
_LISTS = {"input_dims": "input_dims", "input_type": "input_types", "input_strides": "input_strides"}


def trace_frame(table: pa.Table, symbols: TraceSymbolTable, clock_ns: int = 0) -> pd.DataFrame:
    """Return the frame of one rank.

    Args:
        table: Rows of the analysis ``trace_events``.
        symbols: Symbol table of all names and categories.
        clock_ns: Time in the frame at the start of the job [ns].

    Returns:
        A row per event with HTA's columns. ``index`` is the position in ``traceEvents`` and also
        the index of the frame. ``ts``, ``dur`` and ``end`` are float64 microseconds; ``name`` and
        ``cat`` are ids in ``symbols``. ``index_correlation`` is the index of the partner (the
        launch of an operation, or the operation of a launch), -1 without a correlation id, and 0 if
        the partner is not in the trace.
    """
    frame = pd.DataFrame({"index": _numbers(table, "event_id", -1)})
    frame["cat"] = _symbols(table, "category", symbols)
    frame["name"] = _symbols(table, "name", symbols)
    start, dur = _numbers(table, "ts", 0) + clock_ns, _numbers(table, "dur", 0)
    for column, (ours, default) in _NUMBERS.items():
        frame[column] = _numbers(table, ours, default)
    bandwidth = table.column("bandwidth_gbps").to_numpy(zero_copy_only=False)
    frame["memory_bw_gbps"] = np.nan_to_num(bandwidth.astype(float))
    for column, (ours, text) in _TEXTS.items():
        frame[column] = _mapped(table, ours, {None: text})
    for column, ours in _LISTS.items():
        known: dict[str | None, Any] = {None: "-1"}
        known.update({t: json.loads(t) for t in _distinct(table, ours) if t is not None})
        frame[column] = _mapped(table, ours, known)
    frame.insert(5, "ts", microseconds(start))
    frame.insert(6, "dur", dur / NS)
    frame.insert(7, "end", microseconds(start + dur))
    partner = _numbers(table, "linked_event_id", 0)
    frame["index_correlation"] = np.where(frame["correlation"] == -1, -1, partner)
    return frame.set_index("index", drop=False).rename_axis(None)


def microseconds(ns: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Convert nanoseconds to the nearest float64 microseconds.

    Nanoseconds since 1970 exceed the precision of float64, so the division uses ``longdouble``.
    """
    return (ns.astype(np.longdouble) / NS).astype(np.float64)


def _numbers(table: pa.Table, column: str, default: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    filled = pc.fill_null(table.column(column).cast("int64"), default)
    numbers: np.ndarray[Any, np.dtype[np.int64]] = filled.to_numpy()
    return numbers


def _symbols(table: pa.Table, column: str, symbols: TraceSymbolTable) -> pd.Series:
    known: dict[str | None, Any] = {None: -1}
    known.update({t: symbols.sym_index[t] for t in _distinct(table, column) if t is not None})
    return _mapped(table, column, known).astype("int64")


def _distinct(table: pa.Table, column: str) -> list[str | None]:
    values: list[str | None] = table.column(column).unique().to_pylist()
    return values


def _mapped(table: pa.Table, column: str, values: dict[str | None, Any]) -> pd.Series:
    """Replace strings with their mapped values; unmapped strings remain."""
    encoded = table.column(column).combine_chunks().dictionary_encode(null_encoding="encode")
    words = [values.get(text, text) for text in encoded.dictionary.to_pylist()]
    of_word = np.empty(len(words), dtype=object)
    of_word[:] = words
    return pd.Series(of_word[encoded.indices.to_numpy(zero_copy_only=False)], dtype=object)
