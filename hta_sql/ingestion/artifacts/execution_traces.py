"""Execution traces ─▶ staged tables. What their values mean is in sql/ingest/store/et_*.sql."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa

from hta_sql.ingestion.artifacts.damage import quarantine_damage
from hta_sql.ingestion.statements import run
from hta_sql.library.sql_files import ingest_sql
from hta_sql.library.sqltext import create_table
from hta_sql.traces.execution_trace import Node, read_execution_trace

log = logging.getLogger(__name__)

BATCH_ROWS = 20_000

MAX_TEXT = 1 << 20
"""Characters of a list of values that are stored; a longer one is NULL."""

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

_LIMIT = 1 << 63


def stage_execution_trace(
    con: duckdb.DuckDBPyConnection, path: str | None
) -> tuple[Counter[str], dict[str, Any]]:
    """Read an execution trace into staged tables.

    Args:
        con: The database of the rank.
        path: The execution trace; None makes the tables without rows.

    Returns:
        Number of rows by table, and what the table ranks shows as metadata.

    Raises:
        TraceFormatError: It is no execution trace, or is too large.
    """
    rows = _Rows(con)
    problem = read_execution_trace(path, rows.take) if path else None
    rows.flush()
    if problem:
        log.warning(
            "Execution trace %r is damaged: %s. What is whole of it was read.", path, problem
        )
        quarantine_damage(con, "Execution trace", problem)
        rows.counts["quarantine"] = 1
    return rows.counts, {"execution_trace": {"problem": problem}}


class _Rows:
    """Rows of the staged tables, written a batch at a time."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self.counts: Counter[str] = Counter()
        self._con = con
        self._waiting: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _SCHEMAS}
        for table, schema in _SCHEMAS.items():
            con.register("node_rows", schema.empty_table())
            run(con, create_table(f"staged_{table}", "FROM node_rows"))
            con.unregister("node_rows")

    def take(self, node: Node) -> None:
        """Take a node of any schema: before 1.0.2, all values are in the node itself."""
        number = _whole(node.get("id"))
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
        parent = _whole(node.get("ctrl_deps", node.get("parent")))
        row = (
            *(number, parent, *(_whole(attributes.get(name)) for name in _ATTRIBUTES)),
            *(_text(attributes.get(name)) for name in ("name", *_TEXTS)),
            *(_json(lists.get(name)) for name in _LISTS),
        )
        self._add("et_nodes", row)
        for side in ("input", "output"):
            for position, tensor in enumerate(_tensors(lists.get(f"{side}s"))):
                self._add("et_tensors", (number, side == "output", position, *tensor))

    def flush(self) -> None:
        """Write the rows that wait."""
        for table in _SCHEMAS:
            self._write(table)

    def _add(self, table: str, row: tuple[Any, ...]) -> None:
        self.counts[table] += 1
        self._waiting[table].append(row)
        if len(self._waiting[table]) >= BATCH_ROWS:
            self._write(table)

    def _write(self, table: str) -> None:
        rows, self._waiting[table] = self._waiting[table], []
        if not rows:
            return
        schema = _SCHEMAS[table]
        columns = [
            pa.array(values, type_)
            for values, type_ in zip(zip(*rows, strict=True), schema.types, strict=True)
        ]
        self._con.register("node_rows", pa.Table.from_arrays(columns, schema=schema))
        run(self._con, ingest_sql("link/artifact_rows", table))
        self._con.unregister("node_rows")


def _attributes(values: Any) -> Node:
    """Return attributes by name: [{"name": "rf_id", "type": "uint64", "value": 5}, …]."""
    if not isinstance(values, list):
        return {}
    items = [item for item in values if isinstance(item, dict)]
    return {
        str(item.get("name")): item.get("value") for item in items if item.get("name") != "name"
    }


def _tensors(values: Any, depth: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield the tensors of a list of values, those of nested lists too.

    A tensor is [tensor id, storage id, offset, elements, bytes of an element, device].
    """
    if not isinstance(values, list) or depth > 8:
        return
    for value in values:
        if not isinstance(value, list):
            continue
        numbers = value[:5]
        is_tensor = len(value) >= 6 and isinstance(value[5], str)
        if is_tensor and all(_whole(number) is not None for number in numbers):
            yield (*numbers, value[5])
        else:
            yield from _tensors(value, depth + 1)


def _json(value: Any) -> str | None:
    if not isinstance(value, list):
        return None
    text = json.dumps(value, separators=(",", ":"))
    return text if len(text) <= MAX_TEXT else None


def _whole(value: Any) -> int | None:
    return value if type(value) is int and -_LIMIT <= value < _LIMIT else None


def _text(value: Any) -> str | None:
    return value or None if isinstance(value, str) else None
