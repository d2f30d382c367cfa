"""Answer an agent's tool calls in a worker process of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hta_sql.comparison.changes import compare_steps
from hta_sql.comparison.sides import Side
from hta_sql.errors import ParameterError, QueryError, nearest
from hta_sql.library.parameters import check_parameters
from hta_sql.library.sql_files import query_sql
from hta_sql.results.result import Result
from hta_sql.results.without_device import without_device
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

FEW_BYTES = 6_000
"""Bytes of the rows of an answer if the caller requests no number of rows: an agent reads all of it."""

RUN = (
    "run",
    "rank_count",
    "world_size",
    "step_count",
    "event_count",
    "captured_at",
    "device_names",
    "tags",
)
"""Columns of ``runs`` for an agent."""

ADVISED = ("rule", "title", "run", "rank", "rank_count", "subject", "step_saved_ns", "saved_pct")
EXPLAINED = ("confidence", "message", "remedy", "next_analysis", "evidence_sql", "finding_id")
"""Columns of ``advice`` for an agent."""

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
        response = self._of_rows(self._store.sql(query_sql("runs", "all_columns")), None, RUN)
        more = (
            {"more": "Not all runs are listed: sql FROM runs"} if response["is_truncated"] else {}
        )
        return {"runs": response["rows"], **more, "next": list(FIRST_STEPS)}

    def run(
        self,
        name: str,
        parameters: Mapping[str, Any],
        limit: int | None,
        columns: Sequence[str] | None,
    ) -> Answer:
        """Run an analysis; by default with the columns that answer its question."""
        found = self._store.library.find(name)
        known = [column.name for column in found.columns]
        wanted = known if columns == ["*"] else columns or found.shown or known
        if unknown := [column for column in wanted if column not in known]:
            raise ParameterError(
                f"{found.base_name} has no column {cut(unknown[0])!r}.{nearest(unknown[0], known)} "
                f"Available: {', '.join(known)}."
            )
        # Validated as a mapping first: some parameters share names with arguments of run().
        check_parameters(found, parameters)
        result = self._store.run(name, **parameters)
        if not columns and "run" in known and "run" not in wanted and _has_several_runs(result):
            wanted = ["run", *wanted]
        why = "" if len(result) else without_device(self._store.run, found, parameters)
        return {
            "analysis": found.name,
            "says": found.summary,
            **({"no_rows": why} if why else {}),
            **self._of_rows(result, limit, wanted),
            "units": {c.name: c.unit for c in found.columns if c.unit and c.name in wanted},
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
        more = {"more": "Of one run: run findings"} if response["is_truncated"] else {}
        return {
            "findings": response["rows"],
            "is_truncated": response["is_truncated"],
            **more,
            "next": ["advice", "run rank_health"],
        }

    def advice(self, parameters: Mapping[str, Any], limit: int | None) -> Answer:
        """Return each applicable rule of the advice once, on the rank where it saves most."""
        result = self._store.run("advice", **parameters)
        worst = result.arrow().filter(result.arrow()["is_worst"])
        told = self._of_rows(Result.of_rows(worst), limit, (*ADVISED, *EXPLAINED))
        following = sorted({str(row["next_analysis"]) for row in told["rows"]} - {"None"})
        kept = ("row_count", "is_truncated", "more")
        return {
            "advice": told["rows"],
            **{key: told[key] for key in kept if key in told},
            "next": [f"run {name}" for name in following],
        }

    def hang(self, parameters: Mapping[str, Any]) -> Answer:
        """Return the stuck process groups, with the cause first."""
        told = self._of_rows(self._store.run("hang", **parameters), None)
        runs = parameters.get("runs") or self._store.runs()
        dumped = self._store.sql(query_sql("artifacts", "dumped_ranks")).records()
        dumps = sum(row["run"] in runs for row in dumped)
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

    def _of_rows(self, result: Result, limit: int | None, columns: Sequence[str] = ()) -> Answer:
        """Return rows; without a limit as many as an agent reads at once, but at least one."""
        most, total = self._most(limit), len(result)
        table = result.arrow().slice(0, most)
        table = table.select(list(columns)) if columns else table
        enough = FEW_BYTES if limit is None else None
        rows = plain_rows(table, MOST_BYTES - _REST_BYTES, enough)
        told: Answer = {
            "columns": [cut(name, LONGEST_NAME) for name in table.column_names],
            "rows": rows,
            "row_count": total,
            "is_truncated": total > len(rows),
        }
        if others := [name for name in result.columns if name not in table.column_names]:
            told["other_columns"] = others
        if total > len(rows):
            told["more"] = (
                f"The first {len(rows):,} of {total:,} rows. limit: up to {self._most_rows:,}."
            )
        return told


def _has_several_runs(result: Result) -> bool:
    """Return whether the rows of a result, which has a column ``run``, belong to several runs."""
    return len(result.arrow().column("run").unique()) > 1
