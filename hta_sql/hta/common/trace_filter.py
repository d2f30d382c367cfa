"""Filters of trace frames, with HTA's classes: which rows of ``Trace.get_trace`` to keep.

The same selections in SQL stand in docs/filters.md; there they also work before a frame is made.
A filter that needs a column that the frame does not have logs a warning and returns all rows, as
HTA's do.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable

import pandas as pd

from hta_sql.errors import ParameterError
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable

__all__ = [
    "CPUOperatorFilter",
    "CompositeFilter",
    "Filter",
    "FirstIterationFilter",
    "GPUKernelFilter",
    "IterationFilter",
    "IterationIndexFilter",
    "MemCopyEventFilter",
    "NameFilter",
    "NameIdColumnFilter",
    "NameStringColumnFilter",
    "QueryFilter",
    "RankFilter",
    "TimeRangeFilter",
    "ZeroDurationFilter",
]

log = logging.getLogger(__name__)

SYNC_NAMES = ("Event Sync", "Context Sync")
"""Synchronisations that run on a device, but on no stream."""


class Filter(ABC):
    """Something that keeps some rows of a frame: ``chosen = a_filter(frame)``."""

    @abstractmethod
    def __call__(
        self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None
    ) -> pd.DataFrame:
        """Return the rows to keep.

        Args:
            df: Frame of events.
            symbol_table: What the numbers in its ``name`` and ``cat`` stand for.
        """


def text_columns(df: pd.DataFrame) -> tuple[str, str]:
    """Find the columns that hold names and categories as text; ``""`` where there is none."""
    found = []
    for column in ("name", "cat"):
        texts = [c for c in (column, f"s_{column}") if c in df and not _is_number(df[c])]
        found.append(texts[0] if texts else "")
    return found[0], found[1]


class IterationFilter(Filter):
    """Events of one or several profiler steps, by their numbers."""

    def __init__(self, iterations: int | list[int]) -> None:
        self.iterations = _as_list("iterations", iterations)

    def __call__(
        self,
        df: pd.DataFrame,
        symbol_table: TraceSymbolTable | None = None,  # noqa: ARG002 - the filters' interface
    ) -> pd.DataFrame:
        """Keep events whose ``iteration`` is wanted."""
        return _chosen(df, "iteration", lambda: df["iteration"].isin(self.iterations))


class IterationIndexFilter(Filter):
    """Events of the n-th profiler steps of the frame, counted from 0.

    A frame without any step stays whole; places that it does not have give an empty frame.
    """

    def __init__(self, iteration_index: int | list[int]) -> None:
        self.iteration_index = _as_list("iteration_index", iteration_index)

    def __call__(
        self,
        df: pd.DataFrame,
        symbol_table: TraceSymbolTable | None = None,  # noqa: ARG002 - the filters' interface
    ) -> pd.DataFrame:
        """Keep events whose step is at a wanted place among the steps that there are."""
        if "iteration" not in df:
            return _chosen(df, "iteration", df.any)
        steps = sorted(step for step in df["iteration"].unique() if step >= 0)
        if not steps:
            return df
        wanted = [step for place, step in enumerate(steps) if place in self.iteration_index]
        if not wanted:
            log.warning("There is no step at %s; there are %d.", self.iteration_index, len(steps))
        return df.loc[df["iteration"].isin(wanted)]


class FirstIterationFilter(IterationIndexFilter):
    """Events of the first profiler step."""

    def __init__(self) -> None:
        super().__init__([0])


class RankFilter(Filter):
    """Events of one or several ranks, in a frame with a column ``rank``."""

    def __init__(self, ranks: int | list[int]) -> None:
        self.ranks = _as_list("ranks", ranks)

    def __call__(
        self,
        df: pd.DataFrame,
        symbol_table: TraceSymbolTable | None = None,  # noqa: ARG002 - the filters' interface
    ) -> pd.DataFrame:
        """Keep events of the wanted ranks."""
        return _chosen(df, "rank", lambda: df["rank"].isin(self.ranks))


class TimeRangeFilter(Filter):
    """Events that start and end between two times [µs], both inclusive."""

    def __init__(self, time_range: tuple[float, float]) -> None:
        if not isinstance(time_range, tuple) or len(time_range) != 2:
            raise ParameterError(
                f"time_range is {time_range!r}; give (start, end) in microseconds."
            )
        self.time_start, self.time_end = time_range
        if self.time_start > self.time_end:
            raise ParameterError(f"time_range {time_range!r} starts after it ends.")

    def __call__(
        self,
        df: pd.DataFrame,
        symbol_table: TraceSymbolTable | None = None,  # noqa: ARG002 - the filters' interface
    ) -> pd.DataFrame:
        """Keep events that lie inside."""
        return _chosen(
            df,
            "ts",
            lambda: (df["ts"] >= self.time_start) & (df["ts"] + df["dur"] <= self.time_end),
        )


class NameStringColumnFilter(Filter):
    """Events whose name, a text in the frame, an expression matches from its start on."""

    def __init__(self, name_pattern: str) -> None:
        self.name_pattern = name_pattern

    def __call__(
        self,
        df: pd.DataFrame,
        symbol_table: TraceSymbolTable | None = None,  # noqa: ARG002 - the filters' interface
    ) -> pd.DataFrame:
        """Keep matching events."""
        column = text_columns(df)[0]
        return _chosen(df, column or "s_name", lambda: df[column].str.match(self.name_pattern))


class NameIdColumnFilter(Filter):
    """Events whose name, a number in the frame, an expression matches from its start on."""

    def __init__(self, name_pattern: str) -> None:
        self.name_pattern = name_pattern

    def __call__(
        self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None
    ) -> pd.DataFrame:
        """Keep matching events; without a symbol table, all of them."""
        if symbol_table is None:
            log.warning("NameIdColumnFilter needs the symbol table; it keeps every row.")
            return df
        numbers = symbol_table.matching(self.name_pattern)
        return _chosen(df, "name", lambda: df["name"].isin(numbers))


class NameFilter(Filter):
    """Events whose name an expression matches from its start on, be it a text or a number."""

    def __init__(
        self,
        name_pattern: str,
        symbol_table: TraceSymbolTable | None = None,
        name_column: str | None = None,
    ) -> None:
        self.name_pattern = name_pattern
        self.symbol_table = symbol_table
        self.name_column = name_column

    def __call__(
        self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None
    ) -> pd.DataFrame:
        """Keep matching events."""
        symbols = symbol_table or self.symbol_table
        if symbols is not None:
            return NameIdColumnFilter(self.name_pattern)(df, symbols)
        if column := self.name_column:
            return _chosen(df, column, lambda: df[column].str.match(self.name_pattern))
        return NameStringColumnFilter(self.name_pattern)(df)


class QueryFilter(Filter):
    """Events for which an expression of ``pandas.DataFrame.query`` is true."""

    def __init__(self, query_str: str) -> None:
        self.filter_query = query_str

    def __call__(
        self,
        df: pd.DataFrame,
        symbol_table: TraceSymbolTable | None = None,  # noqa: ARG002 - the filters' interface
    ) -> pd.DataFrame:
        """Keep events for which it is true."""
        return df.query(self.filter_query)


ZeroDurationFilter = QueryFilter("dur > 0")
"""Events that last; HTA's name says the opposite."""


class GPUKernelFilter(Filter):
    """Device activity: what has a stream and a correlation id, and, with a symbol table, syncs."""

    def __call__(
        self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None
    ) -> pd.DataFrame:
        """Keep device activity."""
        return _chosen(df, "stream", lambda: _on_gpu(df, symbol_table))


class CPUOperatorFilter(Filter):
    """Everything that is no device activity; without a symbol table, what has no stream."""

    def __call__(
        self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None
    ) -> pd.DataFrame:
        """Keep host events."""
        if symbol_table is None:
            return _chosen(df, "stream", lambda: df["stream"] == -1)
        return _chosen(df, "stream", lambda: ~_on_gpu(df, symbol_table))


class MemCopyEventFilter(Filter):
    """Copies of one kind, by the exact name: ``Memcpy HtoD (Pinned -> Device)``."""

    def __init__(self, memory_copy_type: str, symbol_table: TraceSymbolTable | None = None) -> None:
        self.memory_copy_type = memory_copy_type
        self.symbol_table = symbol_table

    def __call__(
        self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None
    ) -> pd.DataFrame:
        """Keep these copies."""
        symbols = symbol_table or self.symbol_table
        if symbols is None:
            name, cat = text_columns(df)
            wanted: tuple[object, object] = (self.memory_copy_type, "gpu_memcpy")
        else:
            name, cat = "name", "cat"
            numbers = symbols.get_sym_index()
            wanted = (numbers.get(self.memory_copy_type), numbers.get("gpu_memcpy"))
        return _chosen(
            df, name or "s_name", lambda: (df[name] == wanted[0]) & (df[cat] == wanted[1])
        )


class CompositeFilter(Filter):
    """Several filters, one after the other."""

    def __init__(self, filters: list[Filter]) -> None:
        for one in filters:
            if not isinstance(one, Filter):
                raise ParameterError(f"{one!r} is no filter.")
        self.filters = list(filters)

    def __call__(
        self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None
    ) -> pd.DataFrame:
        """Keep what all of them keep."""
        for one in self.filters:
            df = one(df, symbol_table)
        return df


def _on_gpu(df: pd.DataFrame, symbol_table: TraceSymbolTable | None) -> pd.Series:
    on_stream = (df["stream"] >= 0) & (df["correlation"] >= 0)
    if symbol_table is None:
        return on_stream
    numbers = [symbol_table.sym_index.get(name) for name in SYNC_NAMES]
    return on_stream | df["name"].isin([number for number in numbers if number is not None])


def _chosen(df: pd.DataFrame, column: str, choice: Callable[[], pd.Series]) -> pd.DataFrame:
    if column not in df:
        if len(df.columns):
            log.warning("The frame has no column %r; every row is kept.", column)
        return df
    return df.loc[choice()]


def _as_list(name: str, value: int | list[int]) -> list[int]:
    if isinstance(value, int):
        return [value]
    if not isinstance(value, list):
        raise ParameterError(f"{name} is {value!r}; give an integer or a list of integers.")
    return value


def _is_number(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))
