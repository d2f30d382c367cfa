"""A trace, and the rank it was found to be."""

from __future__ import annotations

from dataclasses import dataclass

from hta_sql.traces.peek import Stated


@dataclass(frozen=True)
class TraceFile:
    """One trace, the rank it was found to be, and what said so."""

    path: str
    rank: int
    rank_source: str
    start_ns: int = 0
    capture: int = 0
    stated: Stated | None = None
