"""Reads the files of one MindSpore rank into staged tables.

The meaning of their values is defined in sql/ingest/mindspore.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import duckdb

from hta_sql.errors import TraceFormatError
from hta_sql.ingestion.vendors.mindspore.discovery import ClusterFile, parts_of_rank
from hta_sql.library.sql_files import ingest_sql
from hta_sql.traces.source import open_trace, whole_text

CLUSTER_TABLES = (
    "cluster_step_traces",
    "cluster_communication",
    "cluster_links",
    "cluster_ranks",
)
"""Tables that only cluster data fills."""

MAX_FIELD_BYTES = 64 << 20
"""Maximum field size [bytes]: all communication operators of a step are one field."""

_COLUMNS = {
    "step_trace": (
        *("step_num", "start_point", "end_point", "total", "fp_point", "bp_point"),
        *("iteration_interval", "fp_and_bp", "tail"),
    ),
    "analysis": ("computation_time", "communication_alone_time"),
    "hccl": (
        *("step_num", "communication_cost", "wait_cost", "link_info"),
        "communication_operator_cost",
    ),
}
"""Required columns of each kind of file; additional columns are allowed."""

_JSON_COLUMNS = ("link_info", "communication_operator_cost")
_NUMBER = re.compile(r"^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$")
_MEAN = "-"
"""Marks the row of means, in place of a step number."""


def stage_cluster_data(
    con: duckdb.DuckDBPyConnection, path: str | None
) -> tuple[Counter[str], dict[str, Any]]:
    """Read the files of one rank into staged tables.

    Args:
        con: The database of the rank.
        path: Path of any file of the rank; None creates the tables without rows.

    Returns:
        Number of rows by table, and the metadata for the table ranks.

    Raises:
        TraceFormatError: A file does not match its name, or there are two files of the same kind.
    """
    parts = parts_of_rank(path) if path else []
    contents = _contents(parts)
    analysis = next((part for part in parts if part.kind == "analysis"), None)
    con.execute(
        ingest_sql("mindspore/files", "raw"),
        {
            **contents,
            "parallel_mode": analysis and analysis.parallel_mode,
            "stage_count": analysis and analysis.stage_count,
            "device_count": analysis and analysis.device_count,
        },
    )
    for macro in ("ms_to_ns", "ticks_to_ns"):
        con.execute(ingest_sql("mindspore/files", macro))
    rows: Counter[str] = Counter()
    for table in CLUSTER_TABLES:
        statement = ingest_sql(f"mindspore/{table.removeprefix('cluster_')}")
        ((rows[table],),) = con.execute(statement).fetchall()
    metadata: dict[str, Any] = {
        "producer": "MindSpore",
        "files": [part.path.rpartition("/")[2] for part in parts],
    }
    if analysis:
        metadata["distributedInfo"] = {"world_size": analysis.device_count}
    return rows, metadata


def _contents(parts: Sequence[ClusterFile]) -> dict[str, str | None]:
    """Read the files of a rank: kind ─▶ content as JSON."""
    contents: dict[str, str | None] = dict.fromkeys((*_COLUMNS, "flops", "memory"))
    for part in parts:
        if contents[part.kind] is not None:
            raise TraceFormatError(
                f"{part.path!r}: rank {part.rank} has another file of this kind in the same folder. "
                "Put the files of each capture into a separate folder."
            )
        text = _text(part.path)
        rows = _rows(part, text) if part.kind in _COLUMNS else _object(part, text)
        contents[part.kind] = json.dumps(rows)
    return contents


def _text(path: str) -> str:
    with open_trace(path) as stream:
        try:
            return whole_text(stream).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise TraceFormatError(f"{path!r} is not UTF-8 text: {error}.") from error


def _object(part: ClusterFile, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceFormatError(f"{part.path!r} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise TraceFormatError(
            f"{part.path!r} must contain a JSON object, as written by MindSpore's profiler."
        )
    return value


def _rows(part: ClusterFile, text: str) -> list[dict[str, str]]:
    """Parse a CSV file; a non-numeric cell in a numeric column is an error, never NULL."""
    limit = csv.field_size_limit(MAX_FIELD_BYTES)
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        missing = [name for name in _COLUMNS[part.kind] if name not in (reader.fieldnames or ())]
        if missing:
            raise TraceFormatError(
                f"{part.path!r} has no column {', '.join(missing)}: it was not written by "
                "MindSpore's profiler, or it was written by an unsupported version."
            )
        rows = list(reader)
        for row in rows:
            _check(part, row, reader.line_num)
    except csv.Error as error:
        raise TraceFormatError(f"{part.path!r} is not CSV: {error}.") from error
    finally:
        csv.field_size_limit(limit)
    return rows


def _check(part: ClusterFile, row: dict[str, str], line: int) -> None:
    for name, cell in row.items():
        if name is None or cell is None:
            raise TraceFormatError(
                f"{part.path!r}: a row at or before line {line} has a different number of cells from "
                "the header; the file is truncated or damaged."
            )
        if name in _JSON_COLUMNS:
            try:
                json.loads(cell)
            except (ValueError, RecursionError) as error:
                raise TraceFormatError(
                    f"{part.path!r}: column {name}: not JSON: {error}."
                ) from error
        elif not (_NUMBER.match(cell) or (name == "step_num" and cell == _MEAN)):
            raise TraceFormatError(f"{part.path!r}: column {name}: {cell[:80]!r} is not a number.")
