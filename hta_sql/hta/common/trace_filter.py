"""Filter the rows of trace frames, with HTA's filter classes.

docs/filters.md lists these and HTA's other filters as SQL, which also works before a frame is
created. Like in HTA, a filter whose column is missing logs a warning and returns all rows.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable

import pandas as pd

from hta_sql.errors import ParameterError
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable

__all__ = [
    "CompositeFilter",
    "Filter",
    "GPUKernelFilter",
    "IterationIndexFilter",
    "NameFilter",
    "TimeRangeFilter",
]

log = logging.getLogger(__name__)

SYNC_NAMES = ("Event Sync", "Context Sync")
"""Synchronizations that run on a device but on no stream."""


class Filter(ABC):
    """Base class of filters: ``selected = a_filter(frame)``."""

    @abstractmethod
    def __call__(
        self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None
    ) -> pd.DataFrame:
        """Return the rows to keep.

        Args:
            df: Frame of events.
            symbol_table: Symbol table of the ids in ``name`` and ``cat``.
        """


class IterationIndexFilter(Filter):
    """Keep the events of the n-th profiler steps of a frame; n counts from 0.

    A frame without steps is returned unchanged. If no index exists, the result is empty.
    """

    def __init__(self, iteration_index: int | list[int]) -> None:
        if not isinstance(iteration_index, int | list):
            raise ParameterError(
                f"iteration_index is {iteration_index!r}; pass an integer or a list of integers."
            )
        self.iteration_index = (
            [iteration_index] if isinstance(iteration_index, int) else iteration_index
        )

    def __call__(
        self,
        df: pd.DataFrame,
        symbol_table: TraceSymbolTable | None = None,  # noqa: ARG002 - the filters' interface
    ) -> pd.DataFrame:
        """Keep events whose step has a requested index among the steps of the frame."""
        if "iteration" not in df:
            return _chosen(df, "iteration", df.any)
        steps = sorted(step for step in df["iteration"].unique() if step >= 0)
        if not steps:
            return df
        wanted = [step for place, step in enumerate(steps) if place in self.iteration_index]
        if not wanted:
            log.warning(
                "There is no step at index %s; number of steps: %d.",
                self.iteration_index,
                len(steps),
            )
        return df.loc[df["iteration"].isin(wanted)]


class TimeRangeFilter(Filter):
    """Keep events that start and end in a time range [µs], both ends inclusive."""

    def __init__(self, time_range: tuple[float, float]) -> None:
        if not isinstance(time_range, tuple) or len(time_range) != 2:
            raise ParameterError(
                f"time_range is {time_range!r}; pass (start, end) in microseconds."
            )
        self.time_start, self.time_end = time_range
        if self.time_start > self.time_end:
            raise ParameterError(f"time_range {time_range!r} starts after it ends.")

    def __call__(
        self,
        df: pd.DataFrame,
        symbol_table: TraceSymbolTable | None = None,  # noqa: ARG002 - the filters' interface
    ) -> pd.DataFrame:
        """Keep events inside the range."""
        start, end = self.time_start, self.time_end
        return _chosen(df, "ts", lambda: (df["ts"] >= start) & (df["ts"] + df["dur"] <= end))


class NameFilter(Filter):
    """Keep events whose name (string or symbol id) starts with a match of a regular expression."""

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
        if symbols := symbol_table or self.symbol_table:
            numbers = symbols.matching(self.name_pattern)
            return _chosen(df, "name", lambda: df["name"].isin(numbers))
        column = self.name_column or text_column(df, "name") or "s_name"
        return _chosen(df, column, lambda: df[column].str.match(self.name_pattern))


class GPUKernelFilter(Filter):
    """Keep GPU activity: events with stream and correlation, plus syncs if symbols are given."""

    def __call__(
        self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None
    ) -> pd.DataFrame:
        """Keep GPU activity."""
        known = symbol_table.sym_index if symbol_table else {}
        syncs = [known[name] for name in SYNC_NAMES if name in known]

        def on_gpu() -> pd.Series:
            on_stream = (df["stream"] >= 0) & (df["correlation"] >= 0)
            return on_stream | df["name"].isin(syncs) if syncs else on_stream

        return _chosen(df, "stream", on_gpu)


class CompositeFilter(Filter):
    """Apply several filters in sequence."""

    def __init__(self, filters: list[Filter]) -> None:
        for one in filters:
            if one is self or not isinstance(one, Filter):
                raise ParameterError(f"{one!r} is not a filter, or it contains itself.")
        self.filters = list(filters)

    def __call__(
        self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None
    ) -> pd.DataFrame:
        """Keep the rows that all filters keep."""
        for one in self.filters:
            df = one(df, symbol_table)
        return df


def text_column(df: pd.DataFrame, column: str) -> str:
    """Return the column with names or categories as strings, or ``""`` if there is none."""
    found = (c for c in (column, f"s_{column}") if c in df)
    return next((c for c in found if not pd.api.types.is_numeric_dtype(df[c])), "")


def _chosen(df: pd.DataFrame, column: str, choice: Callable[[], pd.Series]) -> pd.DataFrame:
    if column not in df:
        if len(df.columns):
            log.warning("The frame has no column %r, so the filter selects every row.", column)
        return df
    return df.loc[choice()]
