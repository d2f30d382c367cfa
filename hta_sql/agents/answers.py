"""Answers of a store to a program: bounded in rows and time, as JSON, each with what to ask next."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from hta_sql.errors import ParameterError, QueryError
from hta_sql.exports.changes import compare_steps
from hta_sql.exports.comparison import Side
from hta_sql.library.objects import SqlObject
from hta_sql.results.result import Result
from hta_sql.store.trace_store import TraceStore

Answer = dict[str, Any]
Asked = TypeVar("Asked")

FIRST_STEPS = (
    "doctor: what the traces lack, before a number is believed",
    "advice: what to change, with what it saves at most",
    "run kpis: step time, utilisation, exposed communication, memory of each run",
    "run step_accounting: where each step of each rank goes, in parts that sum to it",
    "list_analyses, describe: everything else that can be asked",
)

LONGEST_TEXT = 2_000
"""Characters of a cell: names of kernels and queries fit, arguments of megabytes do not."""


@dataclass(frozen=True)
class Limits:
    """How much an answer may hold, and cost.

    Attributes:
        rows: Rows of an answer, unless fewer are asked for.
        seconds: Time after which a question is interrupted.
    """

    rows: int = 200
    seconds: float = 60.0


class Answers:
    """What one store answers.

    Args:
        store: The store, opened with ``safe=True``: SQL reads it and nothing else.
        limits: Bounds of each answer.
    """

    def __init__(self, store: TraceStore, limits: Limits) -> None:
        self._store = store
        self._limits = limits

    def overview(self) -> Answer:
        """Say which runs there are, and what to ask first."""
        told = self._of_rows(self._asked(lambda: self._store.sql("FROM runs ORDER BY run")), None)
        return {"runs": told["rows"], "next": list(FIRST_STEPS)}

    def run(self, name: str, parameters: Mapping[str, Any], limit: int | None) -> Answer:
        """Run an analysis with these parameters."""
        found = self._store.library.find(name)
        result = self._asked(lambda: self._store.run(name, **parameters))
        return {
            "analysis": found.name,
            "says": found.summary,
            **self._of_rows(result, limit),
            "units": {column.name: column.unit for column in found.columns if column.unit},
        }

    def sql(self, query: str, limit: int | None) -> Answer:
        """Ask one query of the tables, analyses and macros."""
        most = self._most(limit)
        # One more than is given: whether there are more is said, not how many.
        result = self._asked(lambda: self._store.sql(query, most_rows=most + 1))
        told = self._of_rows(result, most)
        return told | {"row_count": None} if told["is_truncated"] else told

    def doctor(self) -> Answer:
        """Say what the traces lack, and what that limits."""
        told = self._of_rows(self._asked(lambda: self._store.run("findings")), None)
        return {"findings": told["rows"], "next": ["advice", "run rank_health"]}

    def advice(self, parameters: Mapping[str, Any]) -> Answer:
        """Say what to change: each rule that speaks once, on the rank where it saves most."""
        result = self._asked(lambda: self._store.run("advice", **parameters))
        told = [row for row in _plain(result) if row["is_worst"]]
        following = sorted({str(row["next_analysis"]) for row in told if row["next_analysis"]})
        return {"advice": told, "next": [f"run {name}" for name in following]}

    def compare(
        self,
        control: Mapping[str, Any],
        test: Mapping[str, Any],
        renamed: list[str] | None,
    ) -> Answer:
        """Compare two runs, or ranks or steps of one: ``run``, ``ranks``, ``steps`` of each side."""
        sides = [
            Side(self._store, side["run"], side.get("ranks"), side.get("steps"))
            for side in (control, test)
        ]
        compared = self._asked(lambda: compare_steps(*sides, renamed=renamed))
        told: Answer = compared.as_json()
        changes = told["changes"]
        told["changes"] = changes[: self._limits.rows]
        told["is_truncated"] = len(changes) > self._limits.rows
        return {side: told[side] for side in told if side not in ("baseline", "candidate")}

    def _asked(self, question: Callable[[], Asked]) -> Asked:
        """Ask, and interrupt what takes too long.

        Raises:
            QueryError: It took longer than the limit, or the engine refused it.
        """
        late = threading.Event()

        def interrupt() -> None:
            late.set()
            self._store.interrupt()

        timer = threading.Timer(self._limits.seconds, interrupt)
        timer.start()
        try:
            return question()
        except QueryError as error:
            if late.is_set():
                raise QueryError(
                    f"Interrupted after {self._limits.seconds:g} s: ask for fewer runs, ranks or "
                    "steps, or have the server started with a longer --seconds."
                ) from error
            raise
        finally:
            timer.cancel()

    def _most(self, limit: int | None) -> int:
        if limit is not None and limit < 1:
            raise ParameterError("limit must be 1 or more.")
        return min(limit or self._limits.rows, self._limits.rows)

    def _of_rows(self, result: Result, limit: int | None) -> Answer:
        most = self._most(limit)
        total = len(result)
        return {
            "columns": result.columns,
            "rows": _plain(result, most),
            "row_count": total,
            "is_truncated": total > most,
        }


def described(found: SqlObject) -> Answer:
    """Say what an analysis, table or macro takes and returns."""
    return {
        "name": found.name,
        "says": found.full_description,
        "parameters": [
            {"name": p.name, "type": p.type, "default": p.default, "says": p.doc}
            for p in found.parameters
        ],
        "columns": [
            {"name": c.name, "type": c.type, "unit": c.unit, "says": c.doc} for c in found.columns
        ],
        "needs": found.facts.get("Needs"),
    }


def _plain(result: Result, most: int | None = None) -> list[dict[str, Any]]:
    """Return rows as JSON has them; long texts are cut, with a mark."""
    table = result.arrow() if most is None else result.arrow().slice(0, most)
    return [{name: _value(value) for name, value in row.items()} for row in table.to_pylist()]


def _value(value: Any) -> Any:
    if isinstance(value, str):
        cut = f"{value[:LONGEST_TEXT]}… ({len(value):,} characters)"
        return value if len(value) <= LONGEST_TEXT else cut
    if isinstance(value, dict):
        return {str(key): _value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_value(part) for part in value]
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    odd = isinstance(value, float) and not math.isfinite(value)
    return str(value) if odd or isinstance(value, _AS_TEXT) else value


_AS_TEXT = (decimal.Decimal, dt.date, dt.time, dt.timedelta)
"""What JSON has no word for."""
