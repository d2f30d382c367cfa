"""Implement HTA's time breakdowns, communication overlap and launch statistics."""

from __future__ import annotations

import pandas as pd

from hta_sql.hta.frames import breakdown_frames as frames
from hta_sql.hta.methods.job import Job
from hta_sql.hta.methods.showing import show
from hta_sql.text import NS


class Breakdowns(Job):
    """Methods of TraceAnalysis: idle and busy time, kernels, overlap, launches."""

    def get_temporal_breakdown(self, visualize: bool | None = None) -> pd.DataFrame:
        """Return the idle, compute and non-compute time of each GPU.

        Args:
            visualize: Whether to show the chart; None: in a notebook only.

        Returns:
            One row per rank: ``rank, idle_time(us), compute_time(us), non_compute_time(us),
            kernel_time(us), idle_time_pctg, compute_time_pctg, non_compute_time_pctg``.
            ``kernel_time`` is the span from the first start to the last end. Times in µs;
            percentages with two decimals. A rank without GPU activity has NaN.
        """
        result = self._result("temporal_breakdown_v1", self._ranks)
        show(result, visualize, self.store.path)
        return frames.temporal_breakdown(result.df(), self._ranks)

    def get_gpu_kernel_breakdown(
        self,
        visualize: bool | None = None,
        duration_ratio: float = 0.8,
        num_kernels: int | None = 10,
        include_memory_kernels: bool = True,
        image_renderer: str = "",
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the busy time by kernel type, and the longest kernels of each rank and type.

        Args:
            visualize: Whether to show the charts; None: in a notebook only.
            duration_ratio: Share of a type's time that kernels with their own row must cover; used
                if ``num_kernels`` is None.
            num_kernels: Number of kernels per rank and type with their own row. All other kernels
                are combined in the row ``others``, whose statistics cover their launches.
            include_memory_kernels: Whether to include copies and memsets.
            image_renderer: ``png`` or ``svg`` for images; otherwise the notebook's renderer is
                used.

        Returns:
            ``(kernel_type, sum, percentage)`` over all ranks, longest first, percentages with
            one decimal; and ``(name, sum (us), max (us), min (us), stddev, mean (us),
            kernel_type, rank)``. Times in µs.
        """
        types = self._result("gpu_kernel_types_v1", self._ranks)
        kernels = self.result(
            "gpu_kernels_by_name_v1",
            self._ranks,
            num_kernels=num_kernels,
            duration_ratio=duration_ratio if num_kernels is None else None,
        )
        show(types, visualize, self.store.path, image_renderer)
        show(kernels, visualize, self.store.path, image_renderer, top=num_kernels or 10)
        return (
            frames.kernel_types(types.df(), with_memory=include_memory_kernels),
            frames.kernels(kernels.df(), with_memory=include_memory_kernels),
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
            ranks: Ranks to analyze; default: rank 0, or the first rank if 0 does not exist.
            streams: Streams to analyze; default: all.
            visualize: Whether to show the chart; None: in a notebook only.
            visualize_pctg: Whether the chart shows shares of the idle time instead of times.
            show_idle_interval_stats: Whether to return the second frame.
            consecutive_kernel_delay: Longest gap that counts as kernel_wait [µs, exclusive].
                HTA's page says nanoseconds, but its code compares microseconds.

        Returns:
            ``(rank, stream, idle_category, idle_time, idle_time_ratio)``, in µs with two decimals:
            a row for each cause that occurs, and always one for ``other``. The second frame, if
            requested, has ``(rank, stream, count, mean, std, min, 25%, 50%, 75%, max)`` of the gaps
            with ``idle_category`` as index; otherwise None.

        Raises:
            RankError: A rank does not exist.
        """
        wanted = self._default_ranks(ranks)
        threshold = round(consecutive_kernel_delay * NS)
        result = self._result("idle_time_breakdown_v1", wanted, kernel_wait_below_ns=threshold)
        stats = (
            self.result("idle_time_stats_v1", wanted, kernel_wait_below_ns=threshold).df()
            if show_idle_interval_stats
            else None
        )
        show(result, visualize, self.store.path, percent=visualize_pctg)
        table = result.df()
        if streams:
            table = table[table["stream"].isin(streams)]
        frame = frames.idle_time(table)
        return frame, None if stats is None else frames.idle_intervals(table, stats)

    def get_comm_comp_overlap(self, visualize: bool | None = None) -> pd.DataFrame:
        """Return the share of each rank's communication that computation overlaps.

        Args:
            visualize: Whether to show the chart; None: in a notebook only.

        Returns:
            One row per rank: ``rank, comp_comm_overlap_pctg`` (% of the communication time, two
            decimals; NaN for a rank without communication).
        """
        result = self._result("comm_comp_overlap_v1", self._ranks)
        show(result, visualize, self.store.path)
        return frames.overlap(result.df(), self._ranks)

    def get_cuda_kernel_launch_stats(
        self,
        ranks: list[int] | None = None,
        runtime_cutoff: float = 50,
        launch_delay_cutoff: float = 100,
        include_memory_events: bool = True,
        visualize: bool | None = None,
    ) -> dict[int, pd.DataFrame]:
        """Return the host time and device time of each launch, and the delay between them.

        Args:
            ranks: Ranks to analyze; default: rank 0, or the first rank if 0 does not exist.
            runtime_cutoff: Calls longer than this are outliers in the chart [µs].
            launch_delay_cutoff: Delays longer than this are outliers in the chart [µs].
            include_memory_events: Whether to include copies and memsets.
            visualize: Whether to show the charts; None: in a notebook only.

        Returns:
            ``{rank: frame}`` with ``correlation, cpu_duration, gpu_duration, launch_delay`` (µs): a
            row per GPU op whose launch is in the trace, in execution order. All runtime and driver
            calls count, regardless of name and vendor.

        Raises:
            RankError: A rank does not exist.
        """
        wanted = self._default_ranks(ranks)
        result = self._result(
            "cuda_kernel_launch_stats_v1",
            wanted,
            include_memory_events=include_memory_events,
            runtime_cutoff_ns=round(runtime_cutoff * NS),
            launch_delay_cutoff_ns=round(launch_delay_cutoff * NS),
        )
        show(result, visualize, self.store.path)
        return frames.launches(result.df(), wanted)
