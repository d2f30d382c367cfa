"""A store that responds as if it had thousands of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from hta_sql.results.result import Result

if TYPE_CHECKING:
    from hta_sql.library.objects import Library
    from hta_sql.store.query.trace_store import TraceStore

RANKS = 4096


class ManyRanks:
    """A wrapper that simulates a store of 4,096 ranks, each a copy of rank 0 with other times."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store

    def run(self, name: str, **parameters: Any) -> Result:
        """Run an analysis and repeat the rows of rank 0 for every rank.

        Times grow with the rank.
        """
        result = self._store.run(name, **parameters)
        table = result.arrow()
        if "rank" not in table.column_names or not len(table):
            return result
        table = table.filter(pc.equal(table.column("rank"), 0))
        size = len(table)
        places = pa.array([row for _ in range(RANKS) for row in range(size)])
        ranks = pa.array([rank for rank in range(RANKS) for _ in range(size)], pa.int32())
        many = table.take(places)
        for at, field in enumerate(many.schema):
            column = many.column(at)
            if field.name == "rank":
                column = ranks
            elif field.name.endswith("_ns") and pa.types.is_int64(field.type):
                column = pc.add(column, pc.cast(ranks, pa.int64()))
            many = many.set_column(at, field, column)
        with duckdb.connect() as con:
            return Result(con.from_arrow(many), result.analysis)

    def sql(self, query: str) -> Result:
        """Query the real store; a report uses this to find out which tables have rows."""
        return self._store.sql(query)

    @property
    def library(self) -> Library:
        """Return the library of the real store."""
        return self._store.library

    def ranks(self) -> list[int]:
        """Return all simulated ranks."""
        return list(range(RANKS))

    def runs(self) -> list[str]:
        """Return the runs of the real store."""
        return self._store.runs()
