"""Match operators in a frame to nodes of a Chakra execution trace, with HTA's functions."""

from __future__ import annotations

import json
import logging
import os

import pandas as pd
import pyarrow as pa

from hta_sql.errors import ParameterError
from hta_sql.hta.common.trace import Trace
from hta_sql.library.sql_files import query_sql
from hta_sql.traces.side_files import execution_trace_nodes

__all__ = [
    "ExecutionTrace",
    "add_et_column",
    "correlate_execution_trace",
    "load_execution_trace",
]

log = logging.getLogger(__name__)

LISTS = ("input_shapes", "input_types", "output_shapes", "output_types")
"""Columns of the nodes that contain JSON."""

COLUMNS = ("op_schema", *LISTS, "et_node_name")
"""Columns that ``add_et_column`` accepts."""


class ExecutionTrace:
    """The nodes of an execution trace.

    Attributes:
        table: One row per node; see :func:`hta_sql.traces.side_files.execution_trace_nodes`.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table


def load_execution_trace(et_file: str | os.PathLike[str]) -> ExecutionTrace:
    """Read an execution trace that ``torch.profiler.ExecutionTraceObserver`` wrote.

    Raises:
        TraceNotFoundError: The file does not exist.
        TraceFormatError: The file is not an execution trace.
    """
    return ExecutionTrace(execution_trace_nodes(et_file))


def correlate_execution_trace(trace: Trace, rank: int, et: ExecutionTrace) -> None:
    """Add the column ``et_node`` to the frame of a rank: the node of each operator and annotation.

    A node matches an event if both have the same record function id and the same name. The profile
    stores the id as "Record function id", or as "External id" in older PyTorch versions. The column
    is Int64, NA for events without a node. If nothing matches, the execution trace belongs to a
    different capture, and a warning is logged.

    Args:
        trace: A trace: ``TraceAnalysis.t``.
        rank: Rank that the execution trace was recorded on.
        et: The execution trace.
    """
    frame = trace.get_trace(rank)
    nodes = {
        "record_function_ids": et.table.column("record_function_id").to_pylist(),
        "names": et.table.column("name").to_pylist(),
        "node_ids": et.table.column("node_id").to_pylist(),
    }
    found = trace.sql(query_sql("execution_trace_events"), rank, nodes)
    column = found.set_index("event_id")["node_id"].astype("Int64").reindex(frame["index"])
    frame["et_node"] = column.array
    if found.empty:
        log.warning(
            "No event of rank %d has a node in this execution trace: the trace and the profile were "
            "recorded at different times, or the profile has no record-function IDs.",
            rank,
        )


def add_et_column(trace_df: pd.DataFrame, et: ExecutionTrace, column: str) -> None:
    """Add an attribute of the nodes to a frame that has the column ``et_node``.

    Args:
        trace_df: The frame, after :func:`correlate_execution_trace`.
        et: The execution trace.
        column: ``op_schema``, ``input_shapes``, ``input_types``, ``output_shapes``,
            ``output_types`` or ``et_node_name``. NaN for events without a node.

    Raises:
        ParameterError: The column is unknown, or the frame has no ``et_node``.
    """
    if column not in COLUMNS:
        raise ParameterError(f"No column {column!r}; available: {', '.join(COLUMNS)}.")
    if "et_node" not in trace_df:
        raise ParameterError("The frame has no column et_node: call correlate_execution_trace().")
    texts = et.table.column("name" if column == "et_node_name" else column).to_pylist()
    values = [json.loads(text or "[]") if column in LISTS else text or "" for text in texts]
    by_node = dict(zip(et.table.column("node_id").to_pylist(), values, strict=True))
    found = [by_node[int(n)] if pd.notna(n) else float("nan") for n in trace_df["et_node"]]
    trace_df[column] = pd.Series(found, index=trace_df.index, dtype=object)
