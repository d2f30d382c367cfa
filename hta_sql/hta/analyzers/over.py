"""HTA's analyzers take a Trace where TraceAnalysis has one of its own."""

from __future__ import annotations

from hta_sql.hta.common.trace import Trace
from hta_sql.hta.trace_analysis import TraceAnalysis

__all__ = ["over"]


def over(t: Trace) -> TraceAnalysis:
    """Return the analyses of a trace: over its store, its ranks and its scope."""
    return TraceAnalysis.over(t.job, t.get_ranks())
