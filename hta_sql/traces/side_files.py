"""Files that PyTorch writes beside its traces: execution traces and raw memory timelines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import duckdb

from hta_sql.errors import TraceFormatError
from hta_sql.library.files import reader_sql
from hta_sql.traces.source import open_trace, whole_text

if TYPE_CHECKING:
    import pyarrow as pa


def execution_trace_nodes(path: str | os.PathLike[str]) -> pa.Table:
    """Read the nodes of an execution trace.

    Returns:
        ``node_id, name, parent_id, record_function_id, op_schema, input_shapes, input_types,
        output_shapes, output_types``, ordered by node_id; shapes and types as JSON.

    Raises:
        TraceNotFoundError: There is no such file.
        TraceFormatError: It is no execution trace.
    """
    nodes = _read("execution_trace_nodes", path, "an execution trace: ExecutionTraceObserver's")
    if not nodes.num_rows:
        raise TraceFormatError(
            f"{os.fspath(path)!r} has no nodes, so it is not an execution trace: a file that "
            "torch.profiler.ExecutionTraceObserver wrote."
        )
    return nodes


def memory_timeline(path: str | os.PathLike[str]) -> pa.Table:
    """Read torch's raw memory timeline.

    Returns:
        ``ts`` (ns) and the bytes in use after that instant: ``parameter_bytes,
        optimizer_state_bytes, input_bytes, temporary_bytes, activation_bytes, gradient_bytes,
        autograd_bytes, unknown_bytes``.

    Raises:
        TraceNotFoundError: There is no such file.
        TraceFormatError: It is no raw memory timeline.
    """
    return _read(
        "memory_timeline",
        path,
        "a raw memory timeline: export_memory_timeline('....raw.json.gz')'s",
    )


def _read(reader: str, path: str | os.PathLike[str], what: str) -> pa.Table:
    name = os.fspath(path)
    with open_trace(name) as stream:
        text = whole_text(stream)
        if problem := getattr(stream, "problem", None):
            raise TraceFormatError(f"{name!r}: {problem}.")
    try:
        with duckdb.connect(":memory:") as con:
            bound = {"text": text.decode("utf-8")}
            table: pa.Table = con.sql(reader_sql(reader), params=bound).to_arrow_table()
            return table
    except (duckdb.Error, UnicodeDecodeError) as error:
        message = str(error).partition("\n")[0]
        raise TraceFormatError(f"{name!r} is not {what}: {message}") from error
