"""A trace file and its rank."""

from __future__ import annotations

from dataclasses import dataclass

from hta_sql.errors import RankError
from hta_sql.store.disk.manifest import RANKS
from hta_sql.traces.peek import Kind, Stated


def check_rank(rank: int, path: str) -> None:
    """Raise if a rank is too large for its column.

    Raises:
        RankError: It is.
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
    """Traces of the capture of the graphs that it replays."""
    role: str | None = None
    """Role of the process in a job of several roles."""
    role_source: str | None = None
    """Source of the role: given, distributedInfo or names."""
    first_rank: int = 0
    """Rank in the run of rank 0 of its world; not 0 if several roles count their ranks from 0."""
    kernel_files: tuple[str, ...] = ()
    """Files of Inductor about the kernels that it launches."""

    @property
    def kind(self) -> Kind:
        """Whether it is a trace, a dump of a Flight Recorder, a memory snapshot or an execution trace."""
        return self.stated.kind if self.stated else "trace"
