"""Provide TraceAnalysis: HTA's constructor, methods, columns and units, over a store.

All numbers come from analyses under sql/; this package names and scales their columns like HTA. If
HTA's result is wrong, the correct result is returned; docs/hta_differences.md lists every such
difference.
"""

from __future__ import annotations

from functools import cached_property

from hta_sql.hta.common.trace import Trace
from hta_sql.hta.methods.breakdowns import Breakdowns
from hta_sql.hta.methods.counters import Counters, TimeSeriesTypes
from hta_sql.hta.methods.critical_path import CriticalPath
from hta_sql.hta.methods.cupti import Cupti
from hta_sql.hta.methods.operators import Operators
from hta_sql.hta.methods.stragglers import Stragglers

__all__ = ["TimeSeriesTypes", "TraceAnalysis"]


class TraceAnalysis(Breakdowns, CriticalPath, Operators, Counters, Stragglers, Cupti):
    """The traces of one job, analyzed with the methods of HTA's class of the same name.

    The traces are read once, into a store; opening them again reads Parquet only. The store is
    ``.hta_sql`` next to the traces if that folder is writable, otherwise a folder of the user's
    cache (``$XDG_CACHE_HOME/hta_sql`` or ``~/.cache/hta_sql``).

    Args:
        trace_files: ``{rank: path}``, or a list of paths; relative paths are looked up in
            ``trace_dir`` first.
        trace_dir: Folder of per-rank traces, used if ``trace_files`` is not given.
        include_last_profiler_step: Whether to include the last profiler step. Profilers stop in the
            middle of it, so by default it is excluded from a job of two or more steps.
        store: Folder of the store. Without traces, that store is opened and its first run used;
            with traces, the traces are ingested into it.
        run: Run of the store to analyze; default: the first run of the traces.

    Attributes:
        store: The open :class:`hta_sql.TraceStore`, for SQL and all other analyses.
        run: Name of the analyzed run. Several captures of one rank are separate runs: the first is
            used, and a warning lists the others.

    Raises:
        TraceNotFoundError: No traces found.
        TraceError: A trace could not be read; the others are in the store.
        StoreError: The store cannot be used.
        RankError: The run is not in the store.
    """

    @cached_property
    def t(self) -> Trace:
        """The events of each rank as frames with HTA's columns, in the scope of this analysis."""
        return Trace(job=self)
