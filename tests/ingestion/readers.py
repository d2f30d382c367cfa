"""Comparison of the compiled reader with the SQL statements, which define the correct result."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import chain
from typing import Any
from unittest.mock import patch

import duckdb
import pytest

from hta_sql.ingestion import staging
from hta_sql.ingestion.native import NativeBatch, native_batch
from hta_sql.ingestion.staged_tables import EXTRACTED, Staged
from hta_sql.ingestion.staging import prepare
from hta_sql.ingestion.trace_batch import TraceBatch
from hta_sql.traces.chunks import Chunk
from hta_sql.traces.grammar import may_be_too_deep

needs_native = pytest.mark.skipif(
    native_batch() is None,
    reason="the compiled reader is not here: make native builds it where cargo is",
)

_NUMBER = re.compile(r"-?[0-9]+(?:[.][0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)|-0(?![0-9.])")

ANY = 1 << 40
"""Byte limit above the size of every trace in the tests."""

Tables = dict[str, tuple[list[str], list[tuple[Any, ...]]]]
"""Staged table ─▶ its column types and its rows."""


def read(
    texts: Iterable[bytes], *, by_native: bool, most_held: int = 0
) -> tuple[Tables, dict[int, int]]:
    """Read chunks; return the tables, and the event count of each chunk in the compiled reader.

    A batch ends when the compiled reader has buffered enough data. Chunks that DuckDB
    refuses are not salvaged.
    """
    chunks = (Chunk(n, 0, text, may_be_too_deep(text)) for n, text in enumerate(texts))
    batches: list[NativeBatch | None] = []

    def batch() -> NativeBatch | None:
        batches.append(native_batch() if by_native else None)
        return batches[-1]

    with duckdb.connect() as con, patch.object(staging, "native_batch", batch):
        prepare(con)
        tables_of = Staged(con, most_held=most_held)
        traces = TraceBatch([], [0])
        while (first := next(chunks, None)) or not batches:
            following = chain([first] if first else [], chunks)
            staging._stage_chunks(con, following, traces, tables_of)
        tables_of.show()
        tables = {table: _content(con, f"staged_{table}") for table in EXTRACTED}
        tables["pending_events"] = _content(con, "pending_events")
    return tables, {
        chunk: count for held in batches if held for chunk, count in held.events.items()
    }


def check_readers_agree(texts: list[bytes]) -> dict[int, int]:
    """Assert that both readers agree; return the event count of each natively read chunk."""
    by_statements, _ = read(texts, by_native=False)
    read_natively: dict[int, int] = {}
    for most_held in (0, ANY):
        by_native, read_natively = read(texts, by_native=True, most_held=most_held)
        for table, expected in by_statements.items():
            found = by_native[table]
            is_equal = found == expected or (respells() and _spelled(found) == _spelled(expected))
            assert is_equal, (table, most_held)
    return read_natively


@cache
def respells() -> bool:
    """Return whether DuckDB rewrites numbers in JSON as doubles: 2.0.1 does, 2.0.0 does not."""
    text, kind = '[{"ts": 1, "args": {"b": 1.10}}]', '[{"ts": "DECIMAL(20,3)", "args": "JSON"}]'
    with duckdb.connect() as con:
        ((args,),) = con.execute("SELECT from_json(?, ?)[1].args", [text, kind]).fetchall()
    return bool(args != '{"b":1.10}')


def _spelled(content: tuple[list[str], list[tuple[Any, ...]]]) -> list[object]:
    """Return the content of a table with a normalized spelling of the numbers in strings."""
    kinds, rows = content
    return [kinds, *([_plain(cell) for cell in row] for row in rows)]


def _plain(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    return _NUMBER.sub(
        lambda found: "0" if found.group() == "-0" else repr(float(found.group())), cell
    )


def _content(con: duckdb.DuckDBPyConnection, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    found = con.table(table)
    return [
        f"{name} {kind}" for name, kind in zip(found.columns, found.dtypes, strict=True)
    ], sorted(found.fetchall(), key=repr)
