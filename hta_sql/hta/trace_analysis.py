"""TraceAnalysis: HTA's constructor, method names, columns and microseconds, over a store.

Every number comes from an analysis under sql/; here its columns are named and scaled as HTA
does. Where HTA's answer is wrong, the exact one is returned: docs/hta_differences.md lists
each such difference.
"""

from __future__ import annotations

from functools import cached_property

from hta_sql.hta.common.trace import Trace
from hta_sql.hta.methods.breakdowns import Breakdowns
from hta_sql.hta.methods.counters import Counters, TimeSeriesTypes
from hta_sql.hta.methods.critical_path import CriticalPath
from hta_sql.hta.methods.cupti import Cupti
from hta_sql.hta.methods.key_averages import KeyAverages
from hta_sql.hta.methods.operators import Operators
from hta_sql.hta.methods.stragglers import Stragglers

__all__ = ["TimeSeriesTypes", "TraceAnalysis"]


class TraceAnalysis(Breakdowns, CriticalPath, Operators, Counters, Stragglers, Cupti, KeyAverages):
    """The traces of one job, analyzed as HTA's class of that name does.

    The traces are read once, into a store; opening them again reads Parquet only. The store is
    ``.hta_sql`` beside the traces where that folder is writable, else a folder of the user's
    cache (``$XDG_CACHE_HOME/hta_sql`` or ``~/.cache/hta_sql``).

    Args:
        trace_files: ``{rank: path}``, or a list of paths; relative ones are looked for in
            ``trace_dir`` first.
        trace_dir: Folder of per-rank traces, used where ``trace_files`` is not given.
        include_last_profiler_step: Whether to include the last profiler step; profilers stop in
            the middle of it, so that it is left out of a job of two or more steps.
        store: Folder of the store. Without traces, that store is opened and its first run taken;
            with traces, they are read into it.
        run: Run to look at, of those in the store; default: the first one of the traces.

    Attributes:
        store: The opened :class:`hta_sql.TraceStore`, for SQL and all other analyses.
        run: Name of the run that the methods look at. Several captures of one rank are several
            runs: the first is taken, and a warning names the others.

    Raises:
        TraceNotFoundError: No traces there.
        TraceError: A trace could not be read; the others are in the store.
        StoreError: The store cannot be used.
        RankError: No such run in the store.
    """

    @cached_property
    def t(self) -> Trace:
        """The events of each rank as frames with HTA's columns, in the scope of this analysis."""
        return Trace(job=self)
