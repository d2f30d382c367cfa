"""Reads PyTorch's files other than traces: execution traces, memory timelines, launch stacks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import duckdb

from hta_sql.errors import TraceFormatError
from hta_sql.library.sql_files import query_sql
from hta_sql.traces.source import open_trace, whole_text

if TYPE_CHECKING:
    import pyarrow as pa


def execution_trace_nodes(path: str | os.PathLike[str]) -> pa.Table:
    """Read the nodes of an execution trace.

    Returns:
        ``node_id, name, parent_id, record_function_id, op_schema, input_shapes, input_types,
        output_shapes, output_types``, ordered by node_id; shapes and types as JSON.

    Raises:
        TraceNotFoundError: The file does not exist.
        TraceFormatError: The file is not an execution trace.
    """
    nodes = _read(
        "execution_trace_nodes", path, "an execution trace written by ExecutionTraceObserver"
    )
    if not nodes.num_rows:
        raise TraceFormatError(
            f"{os.fspath(path)!r} has no nodes, so it is not an execution trace. Pass a file that "
            "torch.profiler.ExecutionTraceObserver wrote."
        )
    return nodes


def memory_timeline(path: str | os.PathLike[str]) -> pa.Table:
    """Read a raw memory timeline of PyTorch.

    Returns:
        ``ts`` (ns) and the bytes in use after that instant: ``parameter_bytes,
        optimizer_state_bytes, input_bytes, temporary_bytes, activation_bytes, gradient_bytes,
        autograd_bytes, unknown_bytes``.

    Raises:
        TraceNotFoundError: The file does not exist.
        TraceFormatError: The file is not a raw memory timeline.
    """
    return _read(
        "memory_timeline",
        path,
        "a raw memory timeline written by export_memory_timeline('….raw.json.gz')",
    )


def text_of(path: str | os.PathLike[str]) -> str:
    """Read a text file, compressed or not, such as the stacks of ``graph_kernels``.

    Raises:
        TraceNotFoundError: The file does not exist.
        TraceFormatError: The file is damaged, or is not UTF-8 text.
    """
    name = os.fspath(path)
    with open_trace(name) as stream:
        text = whole_text(stream)
        if problem := getattr(stream, "problem", None):
            raise TraceFormatError(f"{name!r}: {problem}.")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TraceFormatError(f"{name!r} is not UTF-8 text: {error}.") from error


def _read(reader: str, path: str | os.PathLike[str], what: str) -> pa.Table:
    bound = {"text": text_of(path)}
    try:
        with duckdb.connect(":memory:") as con:
            table: pa.Table = con.sql(query_sql(reader), params=bound).to_arrow_table()
            return table
    except duckdb.Error as error:
        message = str(error).partition("\n")[0]
        raise TraceFormatError(f"{os.fspath(path)!r} is not {what}: {message}") from error
