"""Runs an analysis in the engine: all rows as Arrow, or the first rows as Python values.

The ranks of a large store are queried one by one, if the analysis has independent ranks.
Concatenating their rows gives the result. If its row order has another column before the rank, the
rows are sorted again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import duckdb

from hta_sql.library import sqltext
from hta_sql.library.answers import first_terms
from hta_sql.library.objects import SqlObject
from hta_sql.results.engine_types import lacks_arrow, lacks_python, table_of_relation
from hta_sql.results.first_rows import FirstRows
from hta_sql.results.result import Result

if TYPE_CHECKING:
    import pyarrow as pa

Question = tuple[str, dict[str, Any]]
"""A trusted SELECT statement and the values bound to its parameters."""

Size = tuple[str, int, int]
"""Run, rank and number of events."""

Scope = dict[str, Any]
"""Values of the parameters ``runs`` and ``ranks`` that restrict a query."""

BATCH_ROWS = 100_000


APART_EVENTS = 4_000_000
"""Number of events above which ranks are queried separately; each query takes 0.5 s to plan."""

_NUMBERS = (
    *("tinyint", "smallint", "integer", "bigint", "hugeint"),
    *("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"),
    *("float", "double", "decimal"),
)


def questions_of(
    analysis: SqlObject, values: Mapping[str, Any], sizes: Sequence[Size]
) -> list[Question]:
    """Return the queries of an analysis: one, or one per rank if that is cheaper.

    Args:
        analysis: The analysis.
        values: Parameters of the analysis.
        sizes: The ranks of the store.
    """
    found = []
    for part in one_by_one(analysis, sizes, values):
        asked = {**values, **part}
        found.append((sqltext.call(analysis.name, {key: f"${key}" for key in asked}), asked))
    return found


def requested_sizes(sizes: Iterable[Size], values: Mapping[str, Any]) -> list[Size]:
    """Return the ranks that a query selects, in row order.

    Args:
        sizes: The ranks of the store.
        values: Parameters of the query.
    """
    runs, ranks = values.get("runs"), values.get("ranks")
    return [
        (run, rank, count)
        for run, rank, count in sizes
        if (runs is None or run in runs) and (ranks is None or rank in ranks)
    ]


def one_by_one(
    analysis: SqlObject, sizes: Iterable[Size], values: Mapping[str, Any]
) -> list[Scope]:
    """Return the scopes that are queried locally, one after the other.

    If an analysis declares ``Ranks: independent`` and the ranks have at least :data:`APART_EVENTS`
    events, each rank is queried separately. Memory then does not grow with the number of ranks, and
    each rank is sorted separately (3/4 of the time for 15 M events in 8 ranks).
    """
    if not has_independent_ranks(analysis):
        return [{}]
    wanted = requested_sizes(sizes, values)
    if len(wanted) < 2 or sum(events for *_, events in wanted) < APART_EVENTS:
        return [{}]
    return [{"runs": [run], "ranks": [rank]} for run, rank, _ in wanted]


def concatenated(tables: Sequence[pa.Table], analysis: SqlObject | None) -> pa.Table:
    """Return the rows of partitions as one table, in the row order of the analysis."""
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    if len(tables) == 1:
        return tables[0]
    whole = pa.concat_tables(tables)
    if analysis is None or not interleaves_ranks(analysis):
        return whole
    terms = first_terms(analysis)
    return whole.sort_by([(t.name, "descending" if t.falls else "ascending") for t in terms])


def interleaves_ranks(analysis: SqlObject) -> bool:
    """Return whether an analysis with independent ranks has other sort columns before the rank."""
    second = [term.name for term in first_terms(analysis)][1:2]
    return has_independent_ranks(analysis) and second != ["rank"]


def has_independent_ranks(analysis: SqlObject) -> bool:
    """Return whether each rank's rows depend on this rank only."""
    return analysis.facts.get("Ranks") == "independent"


def table_of(
    con: duckdb.DuckDBPyConnection,
    questions: Sequence[Question],
    analysis: SqlObject | None = None,
) -> pa.Table:
    """Return the rows of all queries, in the row order of the analysis."""
    return concatenated([_table(con, *question) for question in questions], analysis)


def result_of(
    con: duckdb.DuckDBPyConnection,
    query: str,
    values: Mapping[str, Any] | list[Any] | None,
    most_rows: int | None,
) -> Result:
    """Run a user's query: a SELECT through the Arrow path, anything else as a DuckDB relation."""
    kinds = [statement.type.name for statement in con.extract_statements(query)]
    if kinds == ["SELECT"] and most_rows is None:
        asked = dict(values) if isinstance(values, Mapping) else values
        return Result.of_rows(_table(con, query, asked))
    relation = con.sql(query, params=values)
    return Result(relation if most_rows is None else relation.limit(most_rows))


def _table(
    con: duckdb.DuckDBPyConnection, query: str, values: dict[str, Any] | list[Any] | None
) -> pa.Table:
    """Run one query and return its rows.

    DuckDB's private ``_submit`` is used if available. A relation binds its query when it is created
    and again when it runs, and for a long macro, binding takes a third of the query time on a small
    trace. With ``execute``, the result would be in memory twice.
    """
    submit = getattr(con, "_submit", None)
    if submit is None:  # this DuckDB version has no separate submit
        return table_of_relation(con.sql(query, params=values))
    try:
        submitted = submit(query, values or None, "arrow")
    except duckdb.NotImplementedException:  # Arrow does not support the type
        return table_of_relation(con.sql(query, params=values))
    if lacks_arrow(kind for _, kind, *_ in submitted.description):
        submitted.close()
        return table_of_relation(con.sql(query, params=values))
    return submitted.arrow_table()


def first_rows_of(
    con: duckdb.DuckDBPyConnection,
    questions: Sequence[Question],
    count: int,
    analysis: SqlObject,
    given: tuple[str, ...] = (),
) -> FirstRows:
    """Return the first rows of queries and the total row count; import Arrow only if necessary."""
    if len(questions) > 1 and interleaves_ranks(analysis):
        return _first_of(Result.of_rows(table_of(con, questions, analysis), analysis, given), count)
    rows: list[tuple[Any, ...]] = []
    total = 0
    for query, values in questions:
        con.execute(query, values)
        if lacks_python(kind for _, kind, *_ in con.description):
            return _first_of(Result.of_rows(table_of(con, questions), analysis, given), count)
        found = con.fetchmany(count + 1)
        total += len(found) + (sum(_rest(con)) if len(found) > count else 0)
        rows += islice(found, count - len(rows))
    columns = [(name, kind.id in _NUMBERS) for name, kind, *_ in con.description]
    return FirstRows(analysis, given, tuple(columns), rows, total)


def _first_of(result: Result, count: int) -> FirstRows:
    """Return the first rows of a result."""
    head = result.head(count)
    columns = tuple((name, is_number) for name, is_number, _ in head)
    rows = list(zip(*(values for _, _, values in head), strict=True))
    return FirstRows(result.analysis, result.given, columns, rows, len(result))


def _rest(con: duckdb.DuckDBPyConnection) -> Iterator[int]:
    """Yield the number of rows in each remaining batch."""
    yield (few := len(con.fetchmany(BATCH_ROWS // 10)))
    if few < BATCH_ROWS // 10:
        return
    with warnings.catch_warnings():  # batches are copied once more, one at a time
        warnings.simplefilter("ignore", UserWarning)
        reader = con.to_arrow_reader(BATCH_ROWS)
    yield from (batch.num_rows for batch in reader or ())
