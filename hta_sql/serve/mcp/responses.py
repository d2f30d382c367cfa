"""Answer the tool calls of an agent within limits on rows, bytes and time."""

from __future__ import annotations

from typing import Any

from hta_sql.library.objects import SqlObject
from hta_sql.serve.mcp.bounded_json import Answer
from hta_sql.serve.mcp.limits import Limits
from hta_sql.store.query.trace_store import TraceStore

_ANSWER = "hta_sql.serve.mcp.worker_responses:answer"


class StoreTools:
    """Tools of one store, executed in its worker processes.

    Args:
        store: The store, opened with ``safe=True``: SQL can only read it.
        limits: Limits of each answer.
    """

    def __init__(self, store: TraceStore, limits: Limits) -> None:
        self._store = store
        self._limits = limits

    def ask(self, tool: str, **given: Any) -> Answer:
        """Call a tool of :class:`hta_sql.serve.mcp.worker_responses.Hosted`.

        Raises:
            HtaSqlError: The tool failed.
            QueryError: The call exceeded the time limit, or its worker ended.
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
    """Return the parameters and columns of an analysis, table or macro."""
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
