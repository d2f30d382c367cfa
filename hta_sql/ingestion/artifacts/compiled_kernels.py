"""Reads Inductor's files about compiled kernels into a staged table.

The meaning of its values is defined in sql/ingest/store/compiled_kernels.sql.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from hta_sql.errors import TraceError
from hta_sql.ingestion.statements import run
from hta_sql.library.sqltext import all_rows, create_table
from hta_sql.traces.kernel_information import CompiledKernel, read_kernel_information
from hta_sql.traces.names import path_text

log = logging.getLogger(__name__)

_SCHEMA = pa.schema(
    [
        ("part", pa.int64()),
        ("kernel_id", pa.int64()),
        ("source", pa.string()),
        ("graph", pa.string()),
        ("is_backward_graph", pa.bool_()),
        ("name", pa.string()),
        ("debug_handle", pa.int64()),
        ("post_grad_nodes", pa.string()),
        ("pre_grad_nodes", pa.string()),
        ("source_stacks", pa.string()),
        ("semantic_key", pa.string()),
    ]
)


def stage_compiled_kernels(
    con: duckdb.DuckDBPyConnection, files: Mapping[int, Sequence[str]]
) -> int:
    """Read files about compiled kernels into a staged table.

    A file that cannot be read is skipped with a warning, because the events of the trace are
    complete without it.

    Args:
        con: The database of the ranks.
        files: Number of a trace ─▶ paths of its files. If there are traces but no files, the table
            is not created.

    Returns:
        Number of rows.
    """
    if files and not any(files.values()):
        return 0
    read = cache(_read)
    rows = [
        {"part": part, "kernel_id": number, **row}
        for part, paths in files.items()
        for number, row in enumerate(row for path in paths for row in read(path))
    ]
    con.register("kernel_rows", pa.Table.from_pylist(rows, _SCHEMA))
    run(con, create_table("staged_compiled_kernels", all_rows("kernel_rows")))
    con.unregister("kernel_rows")
    return len(rows)


def _read(path: str) -> list[dict[str, Any]]:
    log.info("Kernel information: %s", path)
    try:
        return list(_rows(path_text(path), read_kernel_information(path)))
    except TraceError as error:
        log.warning("Skipped kernel information, so the sources of kernels are NULL: %s", error)
        return []


def _rows(source: str, kernels: list[CompiledKernel]) -> Iterator[dict[str, Any]]:
    for kernel in kernels:
        yield {
            "source": source,
            "graph": kernel.graph,
            "is_backward_graph": kernel.is_backward,
            "name": kernel.name,
            "debug_handle": kernel.debug_handle,
            "post_grad_nodes": _json(kernel.post_grad_nodes),
            "pre_grad_nodes": _json(kernel.pre_grad_nodes),
            "source_stacks": _json(kernel.stacks),
            "semantic_key": kernel.semantic_key,
        }


def _json(values: list[str]) -> str | None:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")) if values else None
