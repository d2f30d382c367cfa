"""Define the limits on the MCP server's answers, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of an answer.

    Attributes:
        rows: Maximum rows of an answer; a call may request fewer.
        seconds: Time limit of a query [s].
    """

    rows: int = 200
    seconds: float = 60.0
