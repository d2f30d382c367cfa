"""TraceAnalysis: HTA's constructor, method names, columns and microseconds, over a store.

Every number comes from an analysis under sql/; here its columns are named and scaled as HTA
does. Where HTA's answer is wrong, the exact one is returned: docs/hta_differences.md lists
each such difference.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pandas as pd

from hta_sql import hta_frames
from hta_sql.api import ingest, open_store
from hta_sql.errors import RankError
from hta_sql.result import Result
from hta_sql.showing import show
from hta_sql.trace_places import lost_sources, selected, store_beside

if TYPE_CHECKING:
    from hta_sql.store import TraceStore

__all__ = ["TraceAnalysis"]

log = logging.getLogger(__name__)

DEFAULT_TRACE_DIR = "/tmp/trace"  # noqa: S108 - HTA's default
_NS = 1000


class TraceAnalysis:
    """The traces of one job, analysed as HTA's class of that name does.

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

    def __init__(
        self,
        trace_files: Mapping[int, str] | Iterable[str] | None = None,
        trace_dir: str | os.PathLike[str] = DEFAULT_TRACE_DIR,
        include_last_profiler_step: bool | None = False,
        *,
        store: str | os.PathLike[str] | None = None,
        run: str | None = None,
    ) -> None:
        self._scope: dict[str, Any] = {
            "include_last_profiler_step": bool(include_last_profiler_step)
        }
        self.store: TraceStore
        as_it_is = trace_files is None and os.fspath(trace_dir) == DEFAULT_TRACE_DIR
        if store is not None and as_it_is:
            self.store = open_store(store)
            self.run = run or self._first_run()
        else:
            traces, name = selected(trace_files, os.fspath(trace_dir))
            self.store = ingest(traces, store or store_beside(traces), run=name)
            self.run = run or name
        if self.run not in self.store.runs():
            runs = ", ".join(self.store.runs())
            self.store.close()
            raise RankError(f"No run {self.run!r} in {str(self.store.path)!r}; it has: {runs}.")
        self._ranks = self._ranks_of_run(check_sources=store is None or not as_it_is)
        self._scope["runs"] = [self.run]
        self._warn_of_captures()

    def get_temporal_breakdown(self, visualize: bool | None = None) -> pd.DataFrame:
        """Return where the time of each GPU goes: idle, compute, non-compute.

        Args:
            visualize: Whether to show the chart; None: in a notebook only.

        Returns:
            One row per rank: ``rank, idle_time(us), compute_time(us), non_compute_time(us),
            kernel_time(us), idle_time_pctg, compute_time_pctg, non_compute_time_pctg``.
            ``kernel_time`` is the span from the first start to the last end. Times in µs;
            percentages with two decimals. A rank without GPU activity has NaN.
        """
        result = self._result("temporal_breakdown", self._ranks)
        show(result, visualize, self.store.path)
        return hta_frames.temporal_breakdown(result.df(), self._ranks)

    def get_gpu_kernel_breakdown(
        self,
        visualize: bool | None = None,
        duration_ratio: float = 0.8,
        num_kernels: int | None = 10,
        include_memory_kernels: bool = True,
        image_renderer: str = "",  # noqa: ARG002 - HTA's parameter; altair knows its renderer
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the busy time by kernel type, and the longest kernels of each rank and type.

        Args:
            visualize: Whether to show the charts; None: in a notebook only.
            duration_ratio: Share of a type's time whose kernels keep a row of their own; used
                where ``num_kernels`` is None.
            num_kernels: Kernels per rank and type with a row of their own. The rest is the row
                ``others``, computed from its launches.
            include_memory_kernels: Whether to include copies and memsets.
            image_renderer: Not used.

        Returns:
            ``(kernel_type, sum, percentage)`` over all ranks, longest first, percentages with
            one decimal; and ``(name, sum (us), max (us), min (us), stddev, mean (us),
            kernel_type, rank)``. Times in µs.
        """
        types = self._result("gpu_kernel_types", self._ranks)
        kernels = self._result(
            "gpu_kernels_by_name",
            self._ranks,
            num_kernels=num_kernels,
            duration_ratio=duration_ratio if num_kernels is None else None,
        )
        show(types, visualize, self.store.path)
        show(kernels, visualize, self.store.path, top=num_kernels or 10)
        return (
            hta_frames.kernel_types(types.df(), with_memory=include_memory_kernels),
            hta_frames.kernels(kernels.df(), with_memory=include_memory_kernels),
        )

    def get_idle_time_breakdown(  # noqa: PLR0917 - HTA's signature
        self,
        ranks: list[int] | None = None,
        streams: list[int] | None = None,
        visualize: bool | None = None,
        visualize_pctg: bool = True,
        show_idle_interval_stats: bool = False,
        consecutive_kernel_delay: float = 30,
    ) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """Return the idle time of each stream by cause: host_wait, kernel_wait, other.

        Args:
            ranks: Ranks; default: rank 0, or the first one there is.
            streams: Streams; default: all.
            visualize: Whether to show the chart; None: in a notebook only.
            visualize_pctg: Chart shares of the idle time instead of times.
            show_idle_interval_stats: Whether to return the second frame.
            consecutive_kernel_delay: Longest gap that counts as kernel_wait [µs, exclusive].
                HTA's page says nanoseconds, but its code compares microseconds.

        Returns:
            ``(rank, stream, idle_category, idle_time, idle_time_ratio)``, µs and two decimals:
            a row for each cause that occurs, and always one for ``other``; and, where asked
            for, ``(rank, stream, count, mean, std, min, 25%, 50%, 75%, max)`` of the gaps with
            ``idle_category`` as index, else None.

        Raises:
            RankError: No such rank.
        """
        wanted = self._default_ranks(ranks)
        threshold = round(consecutive_kernel_delay * _NS)
        result = self._result("idle_time_breakdown", wanted, kernel_wait_below_ns=threshold)
        stats = (
            self._result("idle_time_stats", wanted, kernel_wait_below_ns=threshold).df()
            if show_idle_interval_stats
            else None
        )
        show(result, visualize, self.store.path, percent=visualize_pctg)
        table = result.df()
        if streams:
            table = table[table["stream"].isin(streams)]
        frame = hta_frames.idle_time(table)
        return frame, None if stats is None else hta_frames.idle_intervals(table, stats)

    def get_comm_comp_overlap(self, visualize: bool | None = None) -> pd.DataFrame:
        """Return how much of each rank's communication is hidden behind computation.

        Args:
            visualize: Whether to show the chart; None: in a notebook only.

        Returns:
            One row per rank: ``rank, comp_comm_overlap_pctg`` (% of the communication time, two
            decimals; NaN for a rank that does not communicate).
        """
        result = self._result("comm_comp_overlap", self._ranks)
        show(result, visualize, self.store.path)
        return hta_frames.overlap(result.df(), self._ranks)

    def get_cuda_kernel_launch_stats(
        self,
        ranks: list[int] | None = None,
        runtime_cutoff: float = 50,
        launch_delay_cutoff: float = 100,
        include_memory_events: bool = True,
        visualize: bool | None = None,
    ) -> dict[int, pd.DataFrame]:
        """Return each launch with its host time, device time and the delay between them.

        Args:
            ranks: Ranks; default: rank 0, or the first one there is.
            runtime_cutoff: Calls above this are outliers in the chart [µs].
            launch_delay_cutoff: Delays above this are outliers in the chart [µs].
            include_memory_events: Whether to include copies and memsets.
            visualize: Whether to show the charts; None: in a notebook only.

        Returns:
            ``{rank: frame}`` with ``correlation, cpu_duration, gpu_duration, launch_delay``
            (µs), a row per GPU op whose launch is in the trace, in order of execution. All
            runtime and driver calls count, whatever their name and vendor.

        Raises:
            RankError: No such rank.
        """
        wanted = self._default_ranks(ranks)
        result = self._result(
            "cuda_kernel_launch_stats",
            wanted,
            include_memory_events=include_memory_events,
            runtime_cutoff_ns=round(runtime_cutoff * _NS),
            launch_delay_cutoff_ns=round(launch_delay_cutoff * _NS),
        )
        show(result, visualize, self.store.path)
        return hta_frames.launches(result.df(), wanted)

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def __enter__(self) -> TraceAnalysis:  # noqa: PYI034 - Self came with 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TraceAnalysis(run={self.run!r}, {len(self._ranks)} ranks, {self.store!r})"

    def _result(self, name: str, ranks: list[int], **parameters: Any) -> Result:
        return self.store.run(name, ranks=ranks, **self._scope, **parameters)

    def _default_ranks(self, ranks: list[int] | None) -> list[int]:
        if not ranks:
            return [0] if 0 in self._ranks else self._ranks[:1]
        unknown = sorted(set(ranks) - set(self._ranks))
        if unknown:
            raise RankError(f"No rank {unknown[0]} in {self.run!r}; it has: {self._ranks}.")
        return list(dict.fromkeys(ranks))

    def _ranks_of_run(self, *, check_sources: bool) -> list[int]:
        rows = self.store.sql(
            "SELECT rank, source FROM ranks WHERE run = $run ORDER BY rank", {"run": self.run}
        ).rows()
        lost = lost_sources(dict(rows)) if check_sources else []
        if lost:
            log.warning("The traces of these ranks are gone; they are left out: %s.", lost)
        return [rank for rank, _ in rows if rank not in lost]

    def _first_run(self) -> str:
        first, *others = self.store.runs()
        if others:
            log.warning(
                "%s has several runs; this looks at the first, %r. The others: %s.",
                self.store.path,
                first,
                ", ".join(others),
            )
        return first

    def _warn_of_captures(self) -> None:
        others = [run for run in self.store.runs() if run.startswith(f"{self.run}-capture")]
        if others:
            log.warning(
                "The job has several captures; this looks at the first, run %r. The others: %s.",
                self.run,
                ", ".join(others),
            )
