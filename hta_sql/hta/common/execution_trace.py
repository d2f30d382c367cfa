"""Execution traces (Chakra): the node of each operator in a frame, with HTA's calls."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from hta_sql.errors import ParameterError
from hta_sql.library.files import reader_sql
from hta_sql.traces.side_files import execution_trace_nodes

if TYPE_CHECKING:
    import pyarrow as pa

    from hta_sql.hta.common.trace import Trace

__all__ = [
    "ETNode",
    "ExecutionTrace",
    "add_et_column",
    "correlate_execution_trace",
    "load_execution_trace",
]

log = logging.getLogger(__name__)

COLUMNS = {
    "op_schema": "op_schema",
    "input_shapes": "input_shapes",
    "input_types": "input_types",
    "output_shapes": "output_shapes",
    "output_types": "output_types",
    "et_node_name": "name",
}
"""Column that add_et_column knows ─▶ column of the nodes."""


@dataclass(frozen=True)
class ETNode:
    """One node of an execution trace.

    Attributes:
        id: Its number.
        name: Operator or annotation.
        parent_id: The node that called it.
        rf_id: Id of its record function.
        op_schema: Signature of the operator.
        input_shapes: Shape of each input.
        input_types: Type of each input.
        output_shapes: Shape of each output.
        output_types: Type of each output.
    """

    id: int
    name: str
    parent_id: int | None
    rf_id: int | None
    op_schema: str
    input_shapes: list[Any]
    input_types: list[str]
    output_shapes: list[Any]
    output_types: list[str]


class ExecutionTrace:
    """The nodes of an execution trace.

    Attributes:
        table: One row per node; see :func:`hta_sql.traces.side_files.execution_trace_nodes`.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    @cached_property
    def nodes(self) -> dict[int, ETNode]:
        """``{number: node}``."""
        return {row["node_id"]: _node(row) for row in self.table.to_pylist()}


def load_execution_trace(et_file: str | os.PathLike[str]) -> ExecutionTrace:
    """Read an execution trace: a file that ``torch.profiler.ExecutionTraceObserver`` wrote.

    Raises:
        TraceNotFoundError: There is no such file.
        TraceFormatError: It is no execution trace.
    """
    return ExecutionTrace(execution_trace_nodes(et_file))


def correlate_execution_trace(trace: Trace, rank: int, et: ExecutionTrace) -> None:
    """Add the column ``et_node`` to the frame of a rank: the node of each operator and annotation.

    A node and an event belong together when they have the same record function id (Record function
    id in the profile; before PyTorch wrote that, External id) and the same name. The column is Int64, NA without a node. Where nothing
    fits, the execution trace is of another capture; that is logged as a warning.

    Args:
        trace: A trace: ``TraceAnalysis.t``.
        rank: The rank that the execution trace was recorded on.
        et: The execution trace.
    """
    frame = trace.get_trace(rank)
    nodes = {
        "record_function_ids": et.table.column("record_function_id").to_pylist(),
        "names": et.table.column("name").to_pylist(),
        "node_ids": et.table.column("node_id").to_pylist(),
    }
    found = trace.sql(reader_sql("execution_trace_events"), rank, nodes)
    column = found.set_index("event_id")["node_id"].astype("Int64").reindex(frame["index"])
    frame["et_node"] = column.array
    if found.empty:
        log.warning(
            "No event of rank %d has a node in this execution trace: they were recorded at "
            "different times, or the profile has no ids of record functions.",
            rank,
        )


def add_et_column(trace_df: pd.DataFrame, et: ExecutionTrace, column: str) -> None:
    """Add something that the nodes say to a frame with the column ``et_node``.

    Args:
        trace_df: The frame, after :func:`correlate_execution_trace`.
        et: The execution trace.
        column: ``op_schema``, ``input_shapes``, ``input_types``, ``output_shapes``,
            ``output_types`` or ``et_node_name``. NaN where an event has no node.

    Raises:
        ParameterError: Another column, or the frame has no ``et_node``.
    """
    if column not in COLUMNS:
        raise ParameterError(f"No column {column!r}; there are: {', '.join(COLUMNS)}.")
    if "et_node" not in trace_df:
        raise ParameterError("The frame has no column et_node: correlate_execution_trace() first.")
    attribute = COLUMNS[column]
    values = {number: getattr(node, attribute) for number, node in et.nodes.items()}
    texts = [values[int(n)] if pd.notna(n) else float("nan") for n in trace_df["et_node"]]
    trace_df[column] = pd.Series(texts, index=trace_df.index, dtype=object)


def _node(row: dict[str, Any]) -> ETNode:
    def parsed(column: str) -> list[Any]:
        value: list[Any] = json.loads(row[column] or "[]")
        return value

    return ETNode(
        id=row["node_id"],
        name=row["name"],
        parent_id=row["parent_id"],
        rf_id=row["record_function_id"],
        op_schema=row["op_schema"] or "",
        input_shapes=parsed("input_shapes"),
        input_types=parsed("input_types"),
        output_shapes=parsed("output_shapes"),
        output_types=parsed("output_types"),
    )
