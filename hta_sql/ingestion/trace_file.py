"""A trace file and its rank."""

from __future__ import annotations

from dataclasses import dataclass

from hta_sql.errors import RankError
from hta_sql.store.disk.manifest import RANKS
from hta_sql.traces.peek import Kind, Stated


def check_rank(rank: int, path: str) -> None:
    """Raise if a rank is too large for its column.

    Raises:
        RankError: The rank is too large.
    """
    if rank not in RANKS:
        raise RankError(f"Rank {rank} of {path!r}: a rank must be below {RANKS.stop:,}.")


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
    """Captures of the graphs that the trace replays."""
    role: str | None = None
    """Role of the process in a job with several roles."""
    role_source: str | None = None
    """Source of the role: given, distributedInfo or names."""
    first_rank: int = 0
    """Offset that was added to the rank, if several roles number their ranks from 0."""
    kernel_files: tuple[str, ...] = ()
    """Inductor's files about the kernels that the trace launches."""

    @property
    def kind(self) -> Kind:
        """Kind of the file: trace, Flight Recorder dump, memory snapshot or execution trace."""
        return self.stated.kind if self.stated else "trace"
