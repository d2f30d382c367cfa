"""TraceAnalysis.t: the events themselves."""

from __future__ import annotations

from functools import cached_property

from hta_sql.hta.common.trace import Trace
from hta_sql.hta.methods.job import Job


class Traces(Job):
    """What TraceAnalysis has beside its analyses: the trace that they look at."""

    @cached_property
    def t(self) -> Trace:
        """The events of each rank as frames with HTA's columns, in the scope of this analysis."""
        return Trace(job=self)
