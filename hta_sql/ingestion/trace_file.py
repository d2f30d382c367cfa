"""A trace file and its rank."""

from __future__ import annotations

from dataclasses import dataclass

from hta_sql.traces.peek import Stated


@dataclass(frozen=True)
class TraceFile:
    """One trace file, its rank, and the source of that rank."""

    path: str
    rank: int
    rank_source: str
    start_ns: int = 0
    capture: int = 0
    stated: Stated | None = None
    captures: tuple[str, ...] = ()
    """Traces of the capture of the graphs that it replays."""

    @property
    def is_dump(self) -> bool:
        """Whether it is no trace but a dump of a Flight Recorder."""
        return self.stated is not None and self.stated.is_dump

    @property
    def is_snapshot(self) -> bool:
        """Whether it is no trace but a memory snapshot."""
        return self.stated is not None and self.stated.is_snapshot
