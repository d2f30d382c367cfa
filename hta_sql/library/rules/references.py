"""Checks that a statement uses only tables, lib macros and deterministic functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hta_sql.library.objects import Library
from hta_sql.library.rules.problem import Found, code_line
from hta_sql.library.rules.statement import Statement
from hta_sql.library.vendors import alternatives

TABLE_FUNCTIONS = {"unnest", "range", "generate_series"}
"""Table functions that an analysis may call in addition to lib; none reads files or settings."""

UNSTABLE = {
    *("random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "setseed", "nextval", "currval"),
    *("now", "today", "get_current_timestamp", "get_current_time", "current_date", "current_time"),
    *("current_timestamp", "current_localtime", "current_localtimestamp", "transaction_timestamp"),
    *("getenv", "current_setting", "current_user", "current_database", "current_query", "version"),
    *("getvariable", "query", "write_log"),
}
"""Functions whose result depends on the time, the session or the machine."""

_LAUNCH_NAME = re.compile(
    rf"\b({alternatives('call_prefix')})\w*(Launch|Memcpy|Memset)|LaunchKernel"
)


def references_of_analysis(library: Library, statement: Statement) -> Iterator[Found]:
    """Check that an analysis uses only tables and lib; no CTE name may start with an underscore.

    The analysis must not contain names of launch functions, and its rows must be ordered.
    """
    yield from references(
        library, statement, "an analysis may use only tables and lib, not another analysis"
    )
    for text in sorted(filter(_LAUNCH_NAME.search, statement.texts)):
        yield (
            code_line(text),
            f"it contains the launch name {text!r}; find launches by correlation (launch_id)",
        )
    if not statement.is_ordered:
        yield "", "the query does not end with an ORDER BY; equal input must give equal output"


def references(library: Library, statement: Statement, allowed: str) -> Iterator[Found]:
    """Check that a statement uses only tables and lib, and no leading underscore in CTE names."""
    yield from _unknown_tables(library, statement)
    yield from _unstable(statement)
    yield from _products(statement)
    for name in sorted(statement.functions - TABLE_FUNCTIONS - _lib_names(library)):
        yield code_line(name), f"it calls {name}; {allowed}"
    for name in _starting_with_underscore(statement.ctes):
        yield (
            code_line(name),
            f"the name of CTE {name} starts with _, which is reserved for CTEs of lib",
        )


def references_of_lib(library: Library, statement: Statement) -> Iterator[Found]:
    """Check that a lib macro uses only tables, lib and its relation parameter.

    The names of its CTEs must start with an underscore, so that none shadows the relation that a
    caller passes.
    """
    yield from _unknown_tables(library, statement)
    yield from _unstable(statement)
    yield from _products(statement)
    allowed = {*TABLE_FUNCTIONS, "query_table", *_lib_names(library)}
    for name in sorted(statement.functions - allowed):
        yield code_line(name), f"it calls {name}; a lib macro may use only tables and lib"
    for name in set(statement.ctes) - set(_starting_with_underscore(statement.ctes)):
        yield (
            code_line(name),
            f"CTE {name} could shadow a caller's relation of that name; rename it to _{name}",
        )


def _unstable(statement: Statement) -> Iterator[Found]:
    for name in sorted(statement.scalars & UNSTABLE):
        yield code_line(name), f"it calls {name}; equal input must give equal output everywhere"


def _products(statement: Statement) -> Iterator[Found]:
    for product in sorted(statement.products):
        yield (
            "^(?! *--).*" + ".*".join(map(re.escape, product.split(" * "))),
            (
                f"the product {product} overflows BIGINT for long times; cast its first factor to "
                "HUGEINT, or to DOUBLE if rows are not summed"
            ),
        )


def _lib_names(library: Library) -> set[str]:
    return {f"lib.{macro.name}" for macro in library.macros}


def _unknown_tables(library: Library, statement: Statement) -> Iterator[Found]:
    # A recursive CTE reads its accumulated rows as recurring.<its name>.
    own = {f"recurring.{cte}" for cte in statement.ctes}
    for name in sorted(statement.tables - {table.name for table in library.tables} - own):
        yield code_line(name), f"it reads {name}, which is not a table of sql/tables"


def _starting_with_underscore(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith("_")]
