"""Shortens names of operations with the library's own macro, without a store."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache

import duckdb

from hta_sql.library.objects import load_library
from hta_sql.library.sql_files import query_sql
from hta_sql.library.sqltext import create_schema


@cache
def _engine(process: int) -> duckdb.DuckDBPyConnection:  # noqa: ARG001 - part of the cache key
    """Return an engine with the macro; creating it takes 16 ms, so it is cached per process."""
    con = duckdb.connect(":memory:", config={"threads": 1})
    con.execute(create_schema("lib"))
    con.execute(next(m.text for m in load_library().macros if m.name == "short_name"))
    return con


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Remove template arguments, call arguments and return types: ``lib.short_name``.

    Args:
        names: Names of operations.

    Returns:
        Name ─▶ short name. Names of copies and memsets are unchanged: ``Memcpy HtoD (Pinned ->
        Device)``.
    """
    wanted = list(dict.fromkeys(names))
    question = query_sql("engine", "short_names")
    with _engine(os.getpid()).cursor() as con:
        ((short,),) = con.execute(question, {"names": wanted}).fetchall()
    return dict(zip(wanted, short, strict=True))
