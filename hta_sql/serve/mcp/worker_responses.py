"""Answer an agent's tool calls in a worker process of the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hta_sql.comparison.changes import compare_steps
from hta_sql.comparison.sides import Side
from hta_sql.errors import ParameterError, QueryError
from hta_sql.library.parameters import check_parameters
from hta_sql.library.sql_files import query_sql
from hta_sql.results.result import Result
from hta_sql.serve.mcp.bounded_json import (
    LONGEST_NAME,
    MOST_BYTES,
    Answer,
    cut,
    plain,
    plain_rows,
    size_of,
)
from hta_sql.store.query.trace_store import TraceStore

FIRST_STEPS = (
    "doctor: data missing from the traces; check it before you trust a number",
    "advice: recommended changes, each with its maximum saving",
    "run kpis: step time, utilization, exposed communication, memory of each run",
    "run step_accounting: step time of each rank, in parts that sum to it",
    "list_analyses, describe: all other analyses",
)

_REST_BYTES = 200_000
"""Bytes of an answer reserved for everything except rows: columns, units, next steps."""


def answer(store: TraceStore, *, tool: str, given: Mapping[str, Any], most_rows: int) -> Answer:
    """Answer a tool call.

    Args:
        store: The store, inside a worker.
        tool: Name of a method of :class:`Hosted`.
        given: Arguments of the method.
        most_rows: Maximum rows of an answer.

    Raises:
        QueryError: The answer exceeds the size limit.
    """
    response: Answer = getattr(Hosted(store, most_rows), tool)(**given)
    if size_of(response) > MOST_BYTES:
        raise QueryError(
            f"The result is larger than {MOST_BYTES:,} bytes. Request fewer runs, ranks or columns."
        )
    return response


class Hosted:
    """Tools of one store.

    Args:
        store: The store.
        most_rows: Maximum rows of an answer.
    """

    def __init__(self, store: TraceStore, most_rows: int) -> None:
        self._store = store
        self._most_rows = most_rows

    def overview(self) -> Answer:
        """Return the runs and suggested first steps."""
        response = self._of_rows(self._store.sql(query_sql("runs", "all_columns")), None)
        return {"runs": response["rows"], "next": list(FIRST_STEPS)}

    def run(self, name: str, parameters: Mapping[str, Any], limit: int | None) -> Answer:
        """Run an analysis with the given parameters."""
        found = self._store.library.find(name)
        # Validated as a mapping first: some parameters share names with arguments of run().
        check_parameters(found, parameters)
        result = self._store.run(name, **parameters)
        return {
            "analysis": found.name,
            "says": found.summary,
            **self._of_rows(result, limit),
            "units": {column.name: column.unit for column in found.columns if column.unit},
        }

    def sql(self, query: str, limit: int | None) -> Answer:
        """Run one query on the tables, analyses and macros."""
        most = self._most(limit)
        # One row beyond the limit reveals whether there are more rows; the total is not counted.
        response = self._of_rows(self._store.sql(query, most_rows=most + 1), most)
        return response | {"row_count": None} if response["is_truncated"] else response

    def doctor(self) -> Answer:
        """Return which data the traces lack, and which results this limits."""
        response = self._of_rows(self._store.run("findings"), None)
        return {"findings": response["rows"], "next": ["advice", "run rank_health"]}

    def advice(self, parameters: Mapping[str, Any]) -> Answer:
        """Return each applicable rule of the advice once, on the rank where it saves most."""
        table = self._store.run("advice", **parameters).arrow()
        recommendations = [row for row in plain_rows(table, MOST_BYTES) if row["is_worst"]]
        following = sorted(
            {str(row["next_analysis"]) for row in recommendations if row["next_analysis"]}
        )
        return {"advice": recommendations, "next": [f"run {name}" for name in following]}

    def hang(self, parameters: Mapping[str, Any]) -> Answer:
        """Return the stuck process groups, with the cause first."""
        told = self._of_rows(self._store.run("hang", **parameters), None)
        dumps = len(self._store.sql(query_sql("artifacts", "dumped_ranks")).rows())
        following = ["run collective_history", "run hang_grid", "run dump_arrivals"]
        return {"dump_count": dumps, **told, "next": following if told["rows"] else []}

    def compare(
        self, control: Mapping[str, Any], test: Mapping[str, Any], renamed: list[str] | None
    ) -> Answer:
        """Compare two sides, each a selection of one run: ``run``, ``ranks`` and ``steps``."""
        compared = compare_steps(self._side(control), self._side(test), renamed=renamed)
        found = compared.as_json()
        response: Answer = {
            key: plain(found[key]) for key in found if key not in ("baseline", "candidate")
        }
        changes = found["changes"]
        fitting, used = [], size_of(response | {"changes": []})
        for change in changes[: self._most_rows]:
            fitting.append(plain(change))
            used += size_of(fitting[-1])
            if used > MOST_BYTES - _REST_BYTES:
                fitting.pop()
                break
        return response | {"changes": fitting, "is_truncated": len(changes) > len(fitting)}

    def _side(self, side: Mapping[str, Any]) -> Side:
        if unknown := sorted(side.keys() - {"run", "ranks", "steps"}):
            raise ParameterError(
                f"control and test accept run, ranks and steps, not {cut(str(unknown[0]))!r}."
            )
        return Side(self._store, side["run"], side.get("ranks"), side.get("steps"))

    def _most(self, limit: int | None) -> int:
        if limit is not None and limit < 1:
            raise ParameterError("limit must be 1 or more.")
        return min(limit or self._most_rows, self._most_rows)

    def _of_rows(self, result: Result, limit: int | None) -> Answer:
        most, total = self._most(limit), len(result)
        rows = plain_rows(result.arrow().slice(0, most), MOST_BYTES - _REST_BYTES)
        return {
            "columns": [cut(name, LONGEST_NAME) for name in result.columns],
            "rows": rows,
            "row_count": total,
            "is_truncated": total > len(rows),
        }
