"""Reads execution traces into staged tables.

The meaning of their values is defined in sql/ingest/store/et_*.sql.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa

from hta_sql.ingestion.artifacts.damage import report_damage
from hta_sql.ingestion.artifacts.rows import StagedRows
from hta_sql.ingestion.artifacts.values import LIMIT
from hta_sql.traces.execution_trace import Node, read_execution_trace

MAX_TEXT = 1 << 20
"""Maximum length of a list of values [characters]; a longer list is NULL."""

_ATTRIBUTES = ("rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid")
_TEXTS = ("op_schema", "kernel_backend", "kernel_file")
_LISTS = tuple(
    f"{side}{what}" for side in ("input", "output") for what in ("s", "_shapes", "_types")
)
_SCHEMAS = {
    "et_nodes": pa.schema(
        [
            *((name, pa.int64()) for name in ("id", "parent", *_ATTRIBUTES)),
            *((name, pa.string()) for name in ("name", *_TEXTS, *_LISTS)),
        ]
    ),
    "et_tensors": pa.schema(
        [
            *(("node_id", pa.int64()), ("is_output", pa.bool_()), ("tensor_position", pa.int64())),
            *((name, pa.int64()) for name in ("tensor_id", "storage_id", "storage_offset")),
            *((name, pa.int64()) for name in ("element_count", "element_bytes")),
            ("device", pa.string()),
        ]
    ),
}
EXECUTION_TRACE_TABLES = tuple(_SCHEMAS)
"""The tables that only execution traces fill."""


def stage_execution_trace(
    con: duckdb.DuckDBPyConnection, path: str | None
) -> tuple[Counter[str], dict[str, Any]]:
    """Read an execution trace into staged tables.

    Args:
        con: The database of the rank.
        path: Path of the execution trace; None creates the tables without rows.

    Returns:
        Number of rows by table, and the metadata for the table ranks.

    Raises:
        TraceFormatError: The file is not an execution trace, or is too large.
    """
    rows = _Rows(con, path)
    problem = read_execution_trace(path, rows.take) if path else None
    rows.flush()
    report_damage(con, rows.counts, "Execution trace", path, problem, odd=rows.values.problem)
    return rows.counts, {"execution_trace": {"problem": problem}}


class _Rows(StagedRows):
    """Rows of the staged tables of an execution trace."""

    def __init__(self, con: duckdb.DuckDBPyConnection, path: str | None) -> None:
        super().__init__(con, _SCHEMAS, path)

    def take(self, node: Node) -> None:
        """Add a node of any schema version; before 1.0.2, all values are in the node itself."""
        whole, text = self.values.whole, self.values.text
        number = whole(node.get("id"))
        if number is None:
            return
        attributes = {**node, **_attributes(node.get("attrs"))}
        lists = {}
        for side in ("input", "output"):
            values = node.get(f"{side}s")
            if isinstance(values, dict):
                lists[f"{side}s"] = values.get("values")
                lists |= {f"{side}_{what}": values.get(what) for what in ("shapes", "types")}
            else:
                names = (f"{side}s", f"{side}_shapes", f"{side}_types")
                lists |= {name: node.get(name) for name in names}
        parent = whole(node.get("ctrl_deps", node.get("parent")))
        row = (
            *(number, parent, *(whole(attributes.get(name)) for name in _ATTRIBUTES)),
            *(text(attributes.get(name)) for name in ("name", *_TEXTS)),
            *(self.values.listed(lists.get(name), MAX_TEXT) for name in _LISTS),
        )
        self.add("et_nodes", row)
        for side in ("input", "output"):
            for position, tensor in enumerate(_tensors(lists.get(f"{side}s"))):
                row = (number, side == "output", position, *tensor[:-1], text(tensor[-1]))
                self.add("et_tensors", row)


def _attributes(values: Any) -> Node:
    """Return attributes by name: [{"name": "rf_id", "type": "uint64", "value": 5}, …]."""
    if not isinstance(values, list):
        return {}
    items = [item for item in values if isinstance(item, dict)]
    return {
        str(item.get("name")): item.get("value") for item in items if item.get("name") != "name"
    }


def _tensors(values: Any, depth: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield the tensors in a list of values and in its nested lists.

    A tensor is [tensor id, storage id, offset, number of elements, bytes per element, device].
    """
    if not isinstance(values, list) or depth > 8:
        return
    for value in values:
        if not isinstance(value, list):
            continue
        numbers = value[:5]
        is_tensor = len(value) >= 6 and isinstance(value[5], str)
        if is_tensor and all(
            type(number) is int and -LIMIT <= number < LIMIT for number in numbers
        ):
            yield (*numbers, value[5])
        else:
            yield from _tensors(value, depth + 1)
