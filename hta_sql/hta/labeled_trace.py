"""Provide LabeledTrace: the traces of one job with a label, for comparison with another job."""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING

from hta_sql.closing import Closing
from hta_sql.comparison.sides import Side
from hta_sql.errors import ParameterError, RankError
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.methods.job import Job

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

Wanted = int | list[int] | None
"""One rank or step, several of them, or None for the first."""


class DeviceType(Enum):
    """Side to compare: host, device or both."""

    CPU = 1
    GPU = 2
    ALL = 3


SIDES = {DeviceType.CPU: "host", DeviceType.GPU: "device", DeviceType.ALL: None}
"""Names of the sides in the analyses."""


class LabeledTrace(Closing):
    """The traces of one job with a label, for comparison with another job.

    Args:
        label: Prefix of the job's columns; default: the name of the run.
        t: An open :class:`hta_sql.TraceAnalysis`, its ``t``, or a :class:`hta_sql.TraceStore`.
        trace_dir: Folder of per-rank traces, read like by TraceAnalysis; used if ``t`` is not
            given.
        run: Run of the store; default: the run of the TraceAnalysis, or the only run of the store.

    Attributes:
        label: The label.

    Raises:
        ParameterError: Neither ``t`` nor ``trace_dir`` is given, or the store has several runs and
            ``run`` is missing.
        RankError: The run does not exist.
        TraceNotFoundError: No traces found.
    """

    def __init__(
        self,
        label: str | None = None,
        t: Job | Trace | TraceStore | None = None,
        trace_dir: str | os.PathLike[str] | None = None,
        *,
        run: str | None = None,
    ) -> None:
        if t is None and trace_dir is None:
            raise ParameterError("Pass t (a TraceAnalysis or a TraceStore) or trace_dir.")
        self._opened = Job(trace_dir=os.fspath(trace_dir)) if t is None and trace_dir else None
        source = t.job if isinstance(t, Trace) else t or self._opened
        if isinstance(source, Job):
            self.store, self.run = source.store, run or source.run
        else:
            self.store, self.run = source, run or _only_run(source)  # type: ignore[assignment, arg-type]  # a store
        if self.run not in self.store.runs():
            runs = ", ".join(self.store.runs())
            raise RankError(
                f"No run {self.run!r} in {str(self.store.path)!r}; available runs: {runs}."
            )
        self.label = label or self.run

    def ranks(self) -> list[int]:
        """Return the ranks."""
        return self.store.ranks(self.run)

    def iterations(self) -> list[int]:
        """Return the profiler steps, including the last one."""
        return Side(self.store, self.run).known_steps()

    def side(self, rank: Wanted = None, iteration: Wanted = None) -> Side:
        """Select ranks and steps.

        Args:
            rank: One or several ranks; default: the first rank.
            iteration: One or several profiler steps; default: the first step. A job without steps
                is always compared as a whole.

        Raises:
            RankError: The rank does not exist.
            ParameterError: The step does not exist.
        """
        known_ranks, known_steps = self.ranks(), self.iterations()
        ranks = _listed(rank, known_ranks)
        steps = _listed(iteration, known_steps)
        if unknown := [number for number in ranks if number not in known_ranks]:
            raise RankError(
                f"No rank {unknown[0]} in {self.label}; available ranks: {known_ranks}."
            )
        if unknown := [number for number in steps if number not in known_steps]:
            raise ParameterError(
                f"No iteration {unknown[0]} in {self.label}; available iterations: {known_steps}."
            )
        return Side(self.store, self.run, ranks, steps or None)

    def close(self) -> None:
        """Close the store if this object opened it."""
        if self._opened:
            self._opened.close()

    def __repr__(self) -> str:
        return f"LabeledTrace({self.label!r}, run={self.run!r}, {self.store!r})"


def _listed(wanted: Wanted, known: list[int]) -> list[int]:
    if wanted is None:
        return known[:1]
    return [wanted] if isinstance(wanted, int) else list(wanted)


def _only_run(store: TraceStore) -> str:
    runs = store.runs()
    if len(runs) != 1:
        raise ParameterError(
            f"{str(store.path)!r} has {len(runs)} runs; pass one of them as run: {', '.join(runs)}."
        )
    return runs[0]
