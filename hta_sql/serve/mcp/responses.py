"""StoreTools of a store to a program: bounded in rows, bytes and time, each with what to ask next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hta_sql.library.objects import SqlObject
from hta_sql.serve.mcp.bounded_json import Answer
from hta_sql.store.query.trace_store import TraceStore

_ANSWER = "hta_sql.serve.mcp.worker_responses:answer"


@dataclass(frozen=True)
class Limits:
    """How much an answer may hold, and cost.

    Attributes:
        rows: Rows of an answer, unless fewer are asked for.
        seconds: Time after which a question is interrupted.
    """

    rows: int = 200
    seconds: float = 60.0


class StoreTools:
    """What one store answers, in its worker processes.

    Args:
        store: The store, opened with ``safe=True``: SQL reads it and nothing else.
        limits: Bounds of each answer.
    """

    def __init__(self, store: TraceStore, limits: Limits) -> None:
        self._store = store
        self._limits = limits

    def ask(self, tool: str, **given: Any) -> Answer:
        """Call a tool of :class:`hta_sql.serve.mcp.worker_responses.Hosted`.

        Raises:
            HtaSqlError: What the tool raises.
            QueryError: It took longer than the limit, or its worker ended.
        """
        answer: Answer = self._store.call(
            _ANSWER,
            seconds=self._limits.seconds,
            tool=tool,
            given=given,
            most_rows=self._limits.rows,
        )
        return answer


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
