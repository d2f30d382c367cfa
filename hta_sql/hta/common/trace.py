"""Trace: the events of a job as frames, with HTA's calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from hta_sql.closing import Closing
from hta_sql.errors import RankError, TraceFormatError
from hta_sql.hta.common.trace_df import get_cpu_gpu_correlation
from hta_sql.hta.common.trace_file import (
    create_rank_to_trace_dict,
    create_rank_to_trace_dict_from_dir,
    get_trace_files,
    read_trace,
    update_trace_rank,
    write_trace,
)
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable, decode_symbol_id_to_symbol_name
from hta_sql.hta.configs.parser_config import ParserConfig
from hta_sql.hta.frames.argument_frames import add_arguments, wanted_arguments
from hta_sql.hta.frames.breakdown_frames import NS
from hta_sql.hta.frames.chrome_events import (
    PHASE_COUNTER,
    PHASE_FLOW_END,
    PHASE_FLOW_START,
    counter_events,
    flow_event,
    trace_event_timestamp_to_unixtime_ns,
)
from hta_sql.hta.frames.event_frames import trace_frame
from hta_sql.hta.methods.job import DEFAULT_TRACE_DIR, Job

__all__ = [
    "DEFAULT_TRACE_DIR",
    "PHASE_COUNTER",
    "PHASE_FLOW_END",
    "PHASE_FLOW_START",
    "Trace",
    "create_rank_to_trace_dict",
    "create_rank_to_trace_dict_from_dir",
    "get_cpu_gpu_correlation",
    "get_trace_files",
    "parse_trace_file",
    "trace_event_timestamp_to_unixtime_ns",
    "update_trace_rank",
]


SYMBOLS = """
SELECT DISTINCT unnest([e.name, e.category]) AS symbol
FROM trace_events(runs := $runs, include_last_profiler_step := true) AS e
ORDER BY symbol
"""

RANKS = """
SELECT r.rank, r.source, r.start_ns, r.base_time_ns, r.first_ts - r.offset_ns AS zero_ns, r.metadata
FROM ranks AS r
WHERE r.run = $run
ORDER BY r.rank
"""


class Trace(Closing):
    """The traces of one job as frames, a rank at a time.

    Frames are made when they are asked for, from the store that the traces were read into.

    Args:
        trace_files: ``{rank: path}``, or a list of paths.
        trace_dir: Folder of per-rank traces, used where ``trace_files`` is not given.
        parser_config: Which further arguments become columns; default: that of
            :meth:`ParserConfig.get_default_cfg`.
        job: A job that is open already; used in place of the files.

    Attributes:
        trace_files: ``{rank: path}``.
        symbol_table: What the numbers in ``name`` and ``cat`` stand for, the same for all ranks.
        meta_data: ``{rank: the keys of its file beside the events}``.
        is_parsed: Whether the traces have been read.

    Raises:
        TraceNotFoundError: No traces there.
        TraceError: A trace could not be read.
    """

    def __init__(
        self,
        trace_files: Mapping[int, str] | Iterable[str] | None = None,
        trace_dir: str = DEFAULT_TRACE_DIR,
        parser_config: ParserConfig | None = None,
        *,
        job: Job | None = None,
    ) -> None:
        self._job = job or Job(trace_files, trace_dir, include_last_profiler_step=True)
        self._owns_job = job is None
        self.parser_config = parser_config or ParserConfig.get_default_cfg()
        self._frames: dict[int, pd.DataFrame] = {}
        self._symbols: TraceSymbolTable | None = None
        rows = self._job.store.sql(RANKS, {"run": self._job.run}).arrow().to_pylist()
        self._about = {row["rank"]: row for row in rows if row["rank"] in self._job.ranks}
        self.trace_files: dict[int, str] = {r: row["source"] for r, row in self._about.items()}
        self.is_parsed = True

    @property
    def job(self) -> Job:
        """The job that the events are of, with its store."""
        return self._job

    @property
    def symbol_table(self) -> TraceSymbolTable:
        """Numbers of names and categories, in alphabetical order."""
        if self._symbols is None:
            rows = self._job.store.sql(SYMBOLS, {"runs": [self._job.run]}).rows()
            self._symbols = TraceSymbolTable(symbol for (symbol,) in rows if symbol is not None)
        return self._symbols

    @property
    def meta_data(self) -> dict[int, dict[str, Any]]:
        """The keys of each rank's file beside the events."""
        return {r: json.loads(row["metadata"] or "{}") for r, row in self._about.items()}

    @property
    def traces(self) -> dict[int, pd.DataFrame]:
        """Frames of all ranks; they are made now and held."""
        return self.get_all_traces()

    def parse_traces(
        self,
        max_ranks: int = -1,
        use_multiprocessing: bool = True,  # noqa: ARG002 - ingest decides
        use_memory_profiling: bool = True,  # noqa: ARG002 - memory is bounded
    ) -> None:
        """Keep the first ``max_ranks`` ranks (-1: all); the traces are in the store already."""
        kept = sorted(self._about)[: None if max_ranks < 0 else max_ranks]
        self._about = {rank: self._about[rank] for rank in kept}
        self.trace_files = {rank: self.trace_files[rank] for rank in kept}

    def align_and_filter_trace(self, include_last_profiler_step: bool | None = False) -> None:
        """Choose whether the last profiler step is in the frames; they are aligned in any case."""
        self._job = self._job.scoped(include_last_profiler_step=bool(include_last_profiler_step))
        self._frames.clear()

    def parse_single_rank(self, rank: int) -> None:
        """Make the frame of a rank now; an unknown rank is passed over, as in HTA."""
        if rank in self._about:
            self.get_trace(rank)

    def parse_multiple_ranks(
        self,
        ranks: list[int],
        use_multiprocessing: bool = True,  # noqa: ARG002 - ingest decides
        use_memory_profiling: bool = True,  # noqa: ARG002 - memory is bounded
    ) -> None:
        """Keep some ranks; the traces are in the store already.

        Raises:
            RankError: No such rank.
        """
        self._about = {rank: self._about[self._checked(rank)] for rank in sorted(set(ranks))}
        self.trace_files = {rank: self.trace_files[rank] for rank in self._about}

    def load_traces(
        self,
        include_last_profiler_step: bool | None = False,
        use_multiprocessing: bool = True,
        use_memory_profiling: bool = True,
    ) -> None:
        """Do what ``parse_traces`` and ``align_and_filter_trace`` do."""
        self.parse_traces(-1, use_multiprocessing, use_memory_profiling)
        self.align_and_filter_trace(include_last_profiler_step)

    def get_ranks(self) -> list[int]:
        """List the ranks."""
        return sorted(self._about)

    def get_trace(self, rank: int) -> pd.DataFrame:
        """Return the events of a rank, always the same frame; see :func:`hta_sql.hta.frames.event_frames.trace_frame`.

        Raises:
            RankError: No such rank.
        """
        self._checked(rank)
        if rank not in self._frames:
            table = self._job.result("trace_events", [rank]).arrow()
            self._frames[rank] = trace_frame(table, self.symbol_table)
            self._add_arguments(rank, self._frames[rank])
        return self._frames[rank]

    def get_all_traces(self) -> dict[int, pd.DataFrame]:
        """Return ``{rank: frame}``."""
        return {rank: self.get_trace(rank) for rank in self.get_ranks()}

    def get_iterations(self, rank: int | None = None) -> list[int]:
        """List the profiler steps of a rank; default: the first rank. Empty for an unknown one."""
        rank = self._first_rank() if rank is None else rank
        if rank not in self._about:
            return []
        steps = self.get_trace(rank)["iteration"].unique()
        return sorted(int(step) for step in steps if step >= 0)

    def get_trace_duration(self, rank: int | None = None) -> float:
        """Return the time from a rank's first start to its last end [µs]; default: the first rank."""
        frame = self.get_trace(self._first_rank() if rank is None else rank)
        # Nanoseconds are three digits; the difference of two floats has more.
        return round(float(frame["end"].max() - frame["ts"].min()), 3)

    def get_trace_start_unixtime_ns(self, rank: int) -> int:
        """Return the Unix time of a rank's own first event [ns].

        Raises:
            RankError: No such rank.
            TraceFormatError: The trace does not say ``baseTimeNanoseconds``.
        """
        about = self._about[self._checked(rank)]
        if about["base_time_ns"] is None:
            raise TraceFormatError(
                f"{about['source']!r} has no baseTimeNanoseconds, so that its times are not on the "
                "clock. PyTorch 2.3 and later write it."
            )
        return int(about["start_ns"])

    @property
    def min_ts(self) -> float:
        """What time 0 of the frames is in the traces' own clock [µs]."""
        zeros = [about["zero_ns"] for about in self._about.values() if about["zero_ns"] is not None]
        return min(zeros, default=0) / NS

    def convert_time_series_to_events(
        self, series: pd.DataFrame, counter_name: str, counter_col: str
    ) -> list[dict[str, Any]]:
        """Make counter events of a series; see :func:`hta_sql.hta.frames.chrome_events.counter_events`.

        :meth:`hta_sql.TraceAnalysis.generate_trace_with_counters` writes traces with counters.
        """
        return counter_events(series, counter_name, counter_col, self.min_ts)

    flow_event = staticmethod(flow_event)

    def get_device_type(self) -> str:
        """Return ``NVIDIA GPU``, ``AMD GPU``, ``MTIA`` or ``UNKNOWN GPU``, by the first rank."""
        runs, ranks = [self._job.run], self.get_ranks()[:1]
        rows = self._job.store.run("device_type", runs=runs, ranks=ranks).arrow().to_pylist()
        return next((str(row["device_type"]) for row in rows if row["device_type"]), "UNKNOWN GPU")

    def get_raw_trace_for_one_rank(self, rank: int = 0) -> dict[str, Any]:
        """Read the file of a rank as Python objects, as it stands.

        Raises:
            RankError: No such rank.
            TraceNotFoundError: The file is gone.
        """
        return read_trace(self.trace_files[self._checked(rank)])

    def write_raw_trace(self, output_file: str, trace_contents: dict[str, Any]) -> None:
        """Write a trace, gzip where the name ends in ``.gz``."""
        write_trace(trace_contents, output_file)

    def decode_symbol_ids(self, use_shorten_name: bool = True) -> None:
        """Add ``s_name`` and ``s_cat`` to the frames of all ranks.

        Args:
            use_shorten_name: Leave out template and call arguments, and return types.
        """
        for frame in self.get_all_traces().values():
            decode_symbol_id_to_symbol_name(frame, self.symbol_table, use_shorten_name)

    def run(self, name: str, rank: int, **parameters: Any) -> pd.DataFrame:
        """Run an analysis on one rank, in the scope of this trace; returns its own columns."""
        return self._job.result(name, [self._checked(rank)], **parameters).df()

    def sql(self, query: str, rank: int, values: Mapping[str, Any]) -> pd.DataFrame:
        """Ask a query with ``$runs`` and ``$ranks``, which become this run and one rank."""
        scope = {"runs": [self._job.run], "ranks": [self._checked(rank)]}
        return self._job.store.sql(query, {**scope, **values}).df()

    def close(self) -> None:
        """Close the store, if this object opened it."""
        if self._owns_job:
            self._job.close()

    def _add_arguments(self, rank: int, frame: pd.DataFrame) -> None:
        config = self.parser_config
        specs = None if config.parse_all_args else wanted_arguments(config, frame)
        if specs == []:
            return
        names = None if specs is None else [spec.raw_name for spec in specs]
        found = self._job.store.run(
            "event_arguments", runs=[self._job.run], ranks=[rank], arguments=names
        )
        add_arguments(frame, found.arrow(), specs)

    def _first_rank(self) -> int:
        return self.get_ranks()[0] if self._about else -1

    def _checked(self, rank: int) -> int:
        if rank not in self._about:
            raise RankError(f"No rank {rank} in this trace; it has: {self.get_ranks()}.")
        return rank


def parse_trace_file(
    trace_file_path: str, cfg: ParserConfig | None = None
) -> tuple[dict[str, Any], pd.DataFrame, TraceSymbolTable]:
    """Read one trace.

    Args:
        trace_file_path: The trace, compressed or not.
        cfg: Which further arguments become columns.

    Returns:
        The keys of the file beside its events; the frame, as :meth:`Trace.get_trace` returns it,
        with ``ts`` since the first event; and what its numbers stand for.

    Raises:
        TraceNotFoundError: There is no such file.
        TraceError: It cannot be read.
    """
    with Trace([trace_file_path], parser_config=cfg) as trace:
        rank = trace.get_ranks()[0]
        return trace.meta_data[rank], trace.get_trace(rank), trace.symbol_table
