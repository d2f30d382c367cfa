"""Provide Job, the base of HTA's classes: the store, run, ranks and scope of one job."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from hta_sql.api import ingest, open_store
from hta_sql.closing import Closing
from hta_sql.errors import ParameterError, RankError
from hta_sql.library.sql_files import query_sql
from hta_sql.results.result import Result
from hta_sql.store.disk.location import lost_sources, selected, store_beside
from hta_sql.text import rank_spans

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

log = logging.getLogger(__name__)

_Job = TypeVar("_Job", bound="Job")

DEFAULT_TRACE_DIR = "/tmp/trace"  # noqa: S108 - HTA's default


class Job(Closing):
    """One run of a store, which the constructor ingests from traces or opens.

    For the arguments, see :class:`hta_sql.TraceAnalysis`.
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
            if not isinstance(trace_files, Mapping | Iterable | None):
                raise ParameterError(
                    f"trace_files must be {{rank: path}} or paths, not {trace_files!r}."
                )
            traces, name = selected(trace_files, os.fspath(trace_dir))
            self.store = ingest(traces, store or store_beside(traces), run=name)
            self.run = run or name
        if self.run not in self.store.runs():
            runs = ", ".join(self.store.runs())
            self.store.close()
            raise RankError(
                f"No run {self.run!r} in {str(self.store.path)!r}; available runs: {runs}."
            )
        self._ranks = self._ranks_of_run(check_sources=store is None or not as_it_is)
        self._scope["runs"] = [self.run]
        self._warn_of_captures()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles, without the frames of ``t``."""
        return {name: value for name, value in vars(self).items() if name != "t"}

    @property
    def ranks(self) -> list[int]:
        """Ranks of the run whose traces exist."""
        return list(self._ranks)

    @property
    def include_last_profiler_step(self) -> bool:
        """Whether the last profiler step is included."""
        return bool(self._scope["include_last_profiler_step"])

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """Names and categories of the events of all ranks, in alphabetical order."""
        rows = self.store.sql(query_sql("events", "symbols"), {"runs": [self.run]}).rows()
        return tuple(symbol for (symbol,) in rows if symbol is not None)

    def result(self, name: str, ranks: list[int], **parameters: Any) -> Result:
        """Run an analysis on the given ranks, in the scope of this job."""
        return self.store.run(name, ranks=ranks, **self._scope, **parameters)

    def scoped(self: _Job, **scope: Any) -> _Job:  # noqa: PYI019 - Self needs Python 3.11
        """Return a copy of this job over the same store, with a different scope."""
        other = copy.copy(self)
        other._scope = {**self._scope, **scope}  # noqa: SLF001 - its own class
        return other

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(run={self.run!r}, {len(self._ranks)} ranks, {self.store!r})"

    def _result(self, name: str, ranks: list[int], **parameters: Any) -> Result:
        """Run an analysis; if the result is empty, log which data the analysis needs."""
        result = self.result(name, ranks, **parameters)
        if result.analysis and not len(result):
            log.warning(
                "%s has no rows for rank%s %s; the analysis needs: %s.",
                result.analysis.base_name,
                "s" if len(ranks) > 1 else "",
                rank_spans(ranks),
                result.analysis.facts.get("Needs", "nothing more than a trace"),
            )
        return result

    def _default_ranks(self, ranks: list[int] | None) -> list[int]:
        if not ranks:
            return [0] if 0 in self._ranks else self._ranks[:1]
        unknown = sorted(set(ranks) - set(self._ranks))
        if unknown:
            raise RankError(
                f"No rank {unknown[0]} in {self.run!r}; available ranks: {self._ranks}."
            )
        return list(dict.fromkeys(ranks))

    def _ranks_of_run(self, *, check_sources: bool) -> list[int]:
        rows = self.store.sql(query_sql("runs", "sources"), {"run": self.run}).rows()
        sources = {rank: source for _, rank, source, _ in rows}
        lost = lost_sources(sources) if check_sources else []
        if lost:
            log.warning("The traces of these ranks are missing; the ranks are omitted: %s.", lost)
        return [rank for rank in sources if rank not in lost]

    def _first_run(self) -> str:
        first, *others = self.store.runs()
        if others:
            log.warning(
                "%s has several runs; using the first, %r. The others: %s.",
                self.store.path,
                first,
                ", ".join(others),
            )
        return first

    def _warn_of_captures(self) -> None:
        others = [run for run in self.store.runs() if run.startswith(f"{self.run}-capture")]
        if others:
            log.warning(
                "The job has several captures; using the first, run %r. The others: %s.",
                self.run,
                ", ".join(others),
            )
