"""Implement HTA's time series: queue length and memory bandwidth."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from enum import Flag, auto

import pandas as pd

from hta_sql.errors import ParameterError
from hta_sql.hta.frames import counter_frames
from hta_sql.hta.methods.job import Job
from hta_sql.hta.methods.showing import show
from hta_sql.text import rank_spans

log = logging.getLogger(__name__)

MAX_QUEUE_LENGTH = 1024
"""Queue length that counts as full, like in HTA; in recorded traces, queues block at 1,022."""


class TimeSeriesTypes(Flag):
    """Series to add to a trace; combine them with ``|``."""

    QUEUE_LENGTH = auto()
    MEMCPY_BANDWIDTH = auto()


class Counters(Job):
    """Methods of TraceAnalysis: counter series, their summaries, traces with counters."""

    def get_queue_length_time_series(
        self, ranks: list[int] | None = None, *, visualize: bool | None = None
    ) -> dict[int, pd.DataFrame]:
        """Return the number of queued operations of each stream, at each point where it changes.

        Args:
            ranks: Ranks to analyze; default: rank 0, or the first rank if 0 does not exist.
            visualize: Whether to show the chart; None: in a notebook only.

        Returns:
            ``{rank: frame}`` with ``ts`` (µs since the run's first event), ``pid``, ``tid`` (device
            and stream), ``stream, queue_length``; the index is the event that changed the length. A
            value applies until the next point of its stream. Events at the same nanosecond are one
            point. Ranks without GPU activity are omitted.

        Raises:
            RankError: A rank does not exist.
        """
        wanted = self._default_ranks(ranks)
        result = self._result("queue_length_series_v1", wanted)
        show(result, visualize, self.store.path)
        return counter_frames.queue_series(result.df(), wanted)

    get_queue_length_series = get_queue_length_time_series

    def get_queue_length_summary(self, ranks: list[int] | None = None) -> pd.DataFrame | None:
        """Return the distribution of each stream's queue length over its changes.

        Args:
            ranks: Ranks to analyze; default: rank 0, or the first rank if 0 does not exist.

        Returns:
            Rows ``(rank, stream)``, columns ``("queue_length", count, mean, std, min, 25%, 50%,
            75%, max)``; None if nothing was queued. The analysis ``queue_length_summary`` has means
            over time.

        Raises:
            RankError: A rank does not exist.
        """
        result = self._result("queue_length_summary_v1", self._default_ranks(ranks))
        return counter_frames.queue_summary(result.df())

    def get_queue_length_summary_from_time_series(
        self, queue_length_dict: Mapping[int, pd.DataFrame]
    ) -> pd.DataFrame | None:
        """Summarize all or part of the series from :meth:`get_queue_length_time_series`.

        Args:
            queue_length_dict: ``{rank: frame}`` with ``stream, queue_length``.

        Returns:
            The same frame as :meth:`get_queue_length_summary`.
        """
        return counter_frames.described_series(queue_length_dict)

    def get_time_spent_blocked_on_full_queue(
        self,
        queue_length_dict: Mapping[int, pd.DataFrame],
        max_queue_length: int = MAX_QUEUE_LENGTH,
        *,
        visualize: bool | None = None,
    ) -> pd.DataFrame:
        """Return the time during which each stream's queue was full, so that launches blocked.

        Args:
            queue_length_dict: Result of :meth:`get_queue_length_time_series`. It only selects the
                ranks and streams; the points are read from the store.
            max_queue_length: Queue length at which a queue is full.
            visualize: Whether to show the chart; None: in a notebook only.

        Returns:
            A row for every stream whose queue was full: ``rank, stream,
            duration_at_max_queue_length`` (µs), ``relative_duration_at_max_queue_length`` (share of
            the observed time of the rank).

        Raises:
            RankError: A rank does not exist.
        """
        wanted = self._default_ranks(list(queue_length_dict))
        result = self.result("queue_full_time_v1", wanted, max_queue_length=max_queue_length)
        show(result, visualize, self.store.path)
        return counter_frames.full_time(result.df(), queue_length_dict)

    def get_memory_bw_time_series(
        self, ranks: list[int] | None = None, *, visualize: bool | None = None
    ) -> dict[int, pd.DataFrame]:
        """Return the bandwidth of copies and memsets by kind, at each point where it changes.

        Args:
            ranks: Ranks to analyze; default: rank 0, or the first rank if 0 does not exist.
            visualize: Whether to show the chart; None: in a notebook only.

        Returns:
            ``{rank: frame}`` with ``ts`` (µs since the run's first event), ``pid`` (device),
            ``name`` (``Memcpy DtoH``, ..., ``Memset``), ``memory_bw_gbps`` (as recorded; exactly 0
            while nothing runs, NaN if no bandwidth is recorded). Ranks without copies are omitted.

        Raises:
            RankError: A rank does not exist.
        """
        wanted = self._default_ranks(ranks)
        result = self._result("memory_bandwidth_series_v1", wanted)
        show(result, visualize, self.store.path)
        return counter_frames.bandwidth_series(result.df(), wanted)

    def get_memory_bw_summary(self, ranks: list[int] | None = None) -> pd.DataFrame | None:
        """Return the distribution of the bandwidth of each kind of copy over its changes.

        Args:
            ranks: Ranks to analyze; default: rank 0, or the first rank if 0 does not exist.

        Returns:
            Rows ``(rank, name)``, columns ``("memory_bw_gbps", count, mean, std, min, 25%, 50%,
            75%, max)`` of the values above 0; None if no bandwidth is recorded.

        Raises:
            RankError: A rank does not exist.
        """
        wanted = self._default_ranks(ranks)
        result = self._result("memory_bandwidth_summary_v1", wanted)
        frame = counter_frames.bandwidth_summary(result.df())
        if frame is None and len(result):
            log.warning(
                "No copy or memset has a recorded bandwidth; ranks: %s.", rank_spans(wanted)
            )
        return frame

    def generate_trace_with_counters(
        self,
        time_series: TimeSeriesTypes | None = None,
        ranks: list[int] | None = None,
        output_suffix: str = "_with_counters",
        *,
        output_dir: str | os.PathLike[str] | None = None,
    ) -> dict[int, str]:
        """Write traces with counter tracks for Perfetto or Chrome; the events stay unchanged.

        Args:
            time_series: Series to add; default: both.
            ranks: Ranks to write; default: rank 0, or the first rank if 0 does not exist.
            output_suffix: Suffix appended to the stem of each trace's file name. If the suffix
                contains ``_with_counters``, a later ingest of the folder skips the file.
            output_dir: Output folder; default: the folder of each trace.

        Returns:
            ``{rank: path}``, compressed with gzip. HTA returns nothing.

        Raises:
            ParameterError: ``time_series`` is not a :class:`TimeSeriesTypes`.
            RankError: A rank does not exist.
            TraceError: A trace is missing or has changed, or a result cannot be written.
        """
        from hta_sql.overlay.counters import SUFFIX, write_counters  # noqa: PLC0415 - imported only when needed

        suffix = output_suffix or SUFFIX
        if SUFFIX not in suffix:
            log.warning(
                "Files named *%s.json.gz will be read as traces when their folder is ingested; "
                "use a suffix that contains %s.",
                suffix,
                SUFFIX,
            )
        wanted = TimeSeriesTypes.QUEUE_LENGTH | TimeSeriesTypes.MEMCPY_BANDWIDTH
        if time_series is not None:
            if not isinstance(time_series, TimeSeriesTypes):
                raise ParameterError(
                    "time_series must be TimeSeriesTypes.QUEUE_LENGTH, TimeSeriesTypes.MEMCPY_BANDWIDTH "
                    f"or both combined with |, not {time_series!r}."
                )
            wanted = time_series
        names = {TimeSeriesTypes.QUEUE_LENGTH: "queue", TimeSeriesTypes.MEMCPY_BANDWIDTH: "memory"}
        series = [name for flag, name in names.items() if flag in wanted]
        return {
            rank: write_counters(
                self.store,
                self.run,
                rank,
                series,
                suffix=suffix,
                output_dir=output_dir,
                include_last_profiler_step=self.include_last_profiler_step,
            ).path
            for rank in self._default_ranks(ranks)
        }
