"""Profiler steps and stragglers, of a Trace."""

from __future__ import annotations

from hta_sql.hta.analyzers.over import over
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.methods.stragglers import Identify

__all__ = ["StragglerAnalysis"]


class StragglerAnalysis:
    """What :class:`hta_sql.TraceAnalysis` does, for a trace that is open already."""

    @classmethod
    def get_profiler_steps(cls, t: Trace) -> list[int]:
        """See :meth:`hta_sql.TraceAnalysis.get_profiler_steps`."""
        return over(t).get_profiler_steps()

    @classmethod
    def get_potential_stragglers(
        cls,
        t: Trace,
        profiler_steps: list[int] | None = None,
        num_candidates: int = 2,
        visualize: bool | None = False,
        straggler_identification_impl: Identify | None = None,
    ) -> list[int]:
        """See :meth:`hta_sql.TraceAnalysis.get_potential_stragglers`."""
        return over(t).get_potential_stragglers(
            profiler_steps, num_candidates, visualize, straggler_identification_impl
        )
