"""Provide Trace: the events of a job as data frames, with HTA's methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd

from hta_sql.closing import Closing
from hta_sql.errors import RankError
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable, decode_symbol_id_to_symbol_name
from hta_sql.hta.configs.parser_config import ParserConfig
from hta_sql.hta.frames.argument_frames import add_arguments
from hta_sql.hta.frames.event_frames import trace_frame
from hta_sql.hta.methods.job import DEFAULT_TRACE_DIR, Job
from hta_sql.library.sql_files import query_sql
from hta_sql.traces.names import path_of

__all__ = ["Trace", "TraceSymbolTable"]


class Trace(Closing):
    """The traces of one job as data frames, one per rank.

    Frames are created on request, from the store that the traces were ingested into. Like in HTA,
    all steps are included and times are those of each file until ``align_and_filter_trace`` or
    ``load_traces`` is called. Afterwards, times count from the first event of all ranks. The trace
    of a :class:`hta_sql.TraceAnalysis` is already aligned and limited to its scope.

    Args:
        trace_files: ``{rank: path}``, or a list of paths.
        trace_dir: Folder of per-rank traces, used if ``trace_files`` is not given.
        parser_config: Event arguments to add as further columns; default:
            :meth:`ParserConfig.get_default_cfg`.
        job: An open job, used instead of the files.

    Attributes:
        trace_files: ``{rank: path}``.
        symbol_table: Symbol table of the ids in ``name`` and ``cat``, shared by all ranks.
        is_parsed: Whether the traces have been read.

    Raises:
        TraceNotFoundError: No traces found.
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
        self._is_aligned = job is not None
        self.parser_config = parser_config or ParserConfig.get_default_cfg()
        self._frames: dict[int, pd.DataFrame] = {}
        self._symbols: TraceSymbolTable | None = None
        rows = (
            self._job.store.sql(query_sql("runs", "sources"), {"run": self._job.run})
            .arrow()
            .to_pylist()
        )
        self._about = {row["rank"]: row for row in rows if row["rank"] in self._job.ranks}
        self.trace_files: dict[int, str] = {
            r: path_of(row["source"]) for r, row in self._about.items()
        }
        self.is_parsed = True

    @property
    def job(self) -> Job:
        """The job of the events, including its store."""
        return self._job

    @property
    def symbol_table(self) -> TraceSymbolTable:
        """Symbol table of names and categories; ids are in alphabetical order."""
        if self._symbols is None:
            self._symbols = TraceSymbolTable(self._job.symbols)
        return self._symbols

    @property
    def traces(self) -> Mapping[int, pd.DataFrame]:
        """Frames of all ranks, created on first access and cached."""
        return self.get_all_traces()

    def parse_traces(
        self,
        max_ranks: int = -1,
        use_multiprocessing: bool = True,  # noqa: ARG002 - the ingest decides
        use_memory_profiling: bool = True,  # noqa: ARG002 - memory is bounded
    ) -> None:
        """Select the first ``max_ranks`` ranks of ``trace_files`` (-1: all).

        All steps are included, and times are those of the files.
        """
        ranks = sorted(self._about.keys() & self.trace_files.keys())
        self._keep(ranks[: None if max_ranks < 0 else max_ranks])

    def align_and_filter_trace(self, include_last_profiler_step: bool | None = False) -> None:
        """Count times from the first event of all ranks, and optionally drop the last step."""
        self._look(bool(include_last_profiler_step), is_aligned=True)

    def load_traces(
        self,
        include_last_profiler_step: bool | None = False,
        use_multiprocessing: bool = True,
        use_memory_profiling: bool = True,
    ) -> None:
        """Run ``parse_traces`` and ``align_and_filter_trace``."""
        self.parse_traces(-1, use_multiprocessing, use_memory_profiling)
        self.align_and_filter_trace(include_last_profiler_step)

    def get_ranks(self) -> list[int]:
        """Return the ranks, sorted."""
        return sorted(self._about)

    def get_trace(self, rank: int) -> pd.DataFrame:
        """Return the events of a rank; repeated calls return the same frame.

        See :func:`hta_sql.hta.frames.event_frames.trace_frame` for the columns.

        Raises:
            RankError: The rank does not exist.
        """
        self._checked(rank)
        if rank not in self._frames:
            self._frames[rank] = self._frame(rank, None)
        return self._frames[rank]

    def events(self, rank: int, ids: Iterable[int]) -> pd.DataFrame:
        """Return a frame of the given events of a rank, in the given order.

        Raises:
            RankError: The rank does not exist.
        """
        wanted = [int(event) for event in ids]
        return self._frame(self._checked(rank), wanted).loc[wanted]

    def get_all_traces(self) -> Mapping[int, pd.DataFrame]:
        """Return ``{rank: frame}``, read-only: analyses read the store and not these frames."""
        return MappingProxyType({rank: self.get_trace(rank) for rank in self.get_ranks()})

    def clock_ns(self, rank: int) -> int:
        """Return the time in a rank's frame at the start of the job [ns]; 0 if aligned."""
        return 0 if self._is_aligned else int(self._about[rank]["zero_ns"] or 0)

    def get_iterations(self, rank: int | None = None) -> list[int]:
        """Return the profiler steps of a rank; default: the first rank.

        The list is empty for an unknown rank.
        """
        rank = self._first_rank() if rank is None else rank
        if rank not in self._about:
            return []
        steps = self.get_trace(rank)["iteration"].unique()
        return sorted(int(step) for step in steps if step >= 0)

    def decode_symbol_ids(self, use_shorten_name: bool = True) -> None:
        """Add ``s_name`` and ``s_cat`` to the frames of all ranks.

        Args:
            use_shorten_name: Drop template and call arguments, and return types.
        """
        for frame in self.get_all_traces().values():
            decode_symbol_id_to_symbol_name(frame, self.symbol_table, use_shorten_name)

    def run(self, name: str, rank: int, **parameters: Any) -> pd.DataFrame:
        """Run an analysis on one rank in the scope of this trace, and return its columns."""
        return self._job.result(name, [self._checked(rank)], **parameters).df()

    def sql(self, query: str, rank: int, values: Mapping[str, Any]) -> pd.DataFrame:
        """Run a query; ``$runs`` and ``$ranks`` are bound to this run and one rank."""
        scope = {"runs": [self._job.run], "ranks": [self._checked(rank)]}
        return self._job.store.sql(query, {**scope, **values}).df()

    def _scope(self, rank: int) -> dict[str, Any]:
        last = self._job.include_last_profiler_step
        return {"runs": [self._job.run], "ranks": [rank], "include_last_profiler_step": last}

    def _frame(self, rank: int, ids: list[int] | None) -> pd.DataFrame:
        table = self._job.store.sql(
            query_sql("events", "framed"), {**self._scope(rank), "ids": ids}
        ).arrow()
        frame = trace_frame(table, self.symbol_table, self.clock_ns(rank))
        self._add_arguments(rank, frame)
        return frame

    def close(self) -> None:
        """Close the store if this object opened it."""
        if self._owns_job:
            self._job.close()

    def _add_arguments(self, rank: int, frame: pd.DataFrame) -> None:
        if specs := [spec for spec in self.parser_config.args if spec.name not in frame]:
            names = [spec.raw_name for spec in specs]
            found = self._job.store.run(
                "event_arguments_v1", runs=[self._job.run], ranks=[rank], arguments=names
            )
            add_arguments(frame, found.arrow(), specs)

    def _keep(self, ranks: list[int]) -> None:
        self._about = {rank: self._about[rank] for rank in ranks}
        self.trace_files = {rank: self.trace_files[rank] for rank in ranks}
        self.is_parsed = bool(ranks)
        self._look(include_last_profiler_step=True, is_aligned=False)

    def _look(self, include_last_profiler_step: bool, *, is_aligned: bool) -> None:
        self._job = self._job.scoped(include_last_profiler_step=include_last_profiler_step)
        self._is_aligned = is_aligned
        self._frames.clear()

    def _first_rank(self) -> int:
        return self.get_ranks()[0] if self._about else -1

    def _checked(self, rank: int) -> int:
        if rank not in self._about:
            raise RankError(f"No rank {rank} in this trace; available ranks: {self.get_ranks()}.")
        return rank
