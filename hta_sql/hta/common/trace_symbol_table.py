"""Map the symbol ids in HTA's frames to names and categories."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar

import pandas as pd

from hta_sql.hta.common.types import (
    CPU_EVENTS_CATEGORY_PATTERN,
    HOST_STREAM,
    KERNEL_CATEGORY_PATTERN,
    KERNEL_LAUNCH_CATEGORY_PATTERN,
    GroupingPattern,
    MemoryKernelGroupingPattern,
    ProfilerStepGroupingPattern,
)
from hta_sql.library.names import short_names

__all__ = ["TraceSymbolTable", "decode_symbol_id_to_symbol_name"]

_EXECUTING = re.compile(r"cpu_op$|\w+_(runtime|driver)$")
_WAITING = re.compile(r"\w*(Synchronize|WaitEvent|EventRecord)")


class TraceSymbolTable:
    """Symbols with ids; the id of a symbol never changes once assigned.

    Attributes:
        sym_table: Symbols, indexed by id.
        sym_index: ``{symbol: id}``.
        NULL: An id that no symbol has.
    """

    NULL: ClassVar[int] = -128

    def __init__(self, symbols: Iterable[str] = ()) -> None:
        self.sym_table: list[str] = []
        self.sym_index: dict[str, int] = {}
        self.add_symbols(symbols)

    def add_symbols(self, symbols: Iterable[str]) -> None:
        """Assign ids to new symbols."""
        for symbol in symbols:
            if symbol not in self.sym_index:
                self.sym_index[symbol] = len(self.sym_table)
                self.sym_table.append(symbol)

    def is_empty(self) -> bool:
        """Return whether the table has no symbols."""
        return not self.sym_table

    def get_sym_id_map(self) -> dict[str, int]:
        """Return {symbol: id}."""
        return self.sym_index

    def get_sym_index(self) -> dict[str, int]:
        """Return {symbol: id}."""
        return self.sym_index

    def get_sym_table(self) -> list[str]:
        """Return the symbols, ordered by id."""
        return self.sym_table

    def get_sym_index_series(self) -> pd.Series:
        """Return the ids, indexed by symbol."""
        return pd.Series(self.sym_index, dtype="int64")

    def get_sym_table_series(self) -> pd.Series:
        """Return the symbols, indexed by id."""
        return pd.Series(self.sym_table, dtype=object)

    def get_symbol_ids(self, symbol_pattern: GroupingPattern) -> dict[str, int]:
        """Return {symbol: id} of a symbol group; see :mod:`hta_sql.hta.common.types`."""
        return {s: n for s, n in self.sym_index.items() if symbol_pattern.match(s)}

    def get_symbol_names(self, symbol_ids: Iterable[int]) -> dict[int, str]:
        """Return {id: symbol} of the given ids; unknown ids are omitted."""
        wanted = sorted({int(n) for n in symbol_ids if 0 <= n < len(self.sym_table)})
        return {number: self.sym_table[number] for number in wanted}

    def get_cpu_event_cat_ids(self) -> list[int]:
        """Return the ids of host event categories (operators, annotations, calls)."""
        return list(self.get_symbol_ids(CPU_EVENTS_CATEGORY_PATTERN).values())

    def get_gpu_kernel_cat_ids(self) -> list[int]:
        """Return the ids of the categories of kernels, copies and memsets."""
        return list(self.get_symbol_ids(KERNEL_CATEGORY_PATTERN).values())

    def get_profiler_step_ids(self) -> list[int]:
        """Return the ids of profiler step names."""
        return list(self.get_symbol_ids(ProfilerStepGroupingPattern).values())

    def get_memory_name_ids(self) -> list[int]:
        """Return the ids of the names of device copies and memsets."""
        return list(self.get_symbol_ids(MemoryKernelGroupingPattern).values())

    def get_kernel_launch_ids(self) -> list[int]:
        """Return the ids of the names of kernel and graph launch calls, for all vendors."""
        return list(self.get_symbol_ids(KERNEL_LAUNCH_CATEGORY_PATTERN).values())

    def get_operator_or_cuda_runtime_mask(self, df: pd.DataFrame) -> pd.Series:
        """Return a mask of the rows that are operators, runtime calls or driver calls."""
        return df["cat"].isin(self.matching(_EXECUTING))

    def get_runtime_launch_events_mask(self, df: pd.DataFrame) -> pd.Series:
        """Return a mask of the rows that are launch calls with GPU activity in the frame.

        Launches are found by correlation, for any name and vendor. Calls that wait for the device
        or record an event launch nothing.
        """
        launched = (df["stream"] == HOST_STREAM) & (df["index_correlation"] > 0)
        return launched & ~df["name"].isin(self.matching(_WAITING))

    def get_events_mask(self, df: pd.DataFrame, events: list[str] | None) -> pd.Series:
        """Return a mask of the rows whose name contains any of the strings; None selects no row."""
        return df["name"].isin(self.find_matches(events) if events else [])

    def find_matches(self, patterns: list[str]) -> list[int]:
        """Return the ids of the symbols that contain any of the strings."""
        found = re.compile("|".join(map(re.escape, patterns)))
        return [number for number, symbol in enumerate(self.sym_table) if found.search(symbol)]

    def find_matched_symbols(self, patterns: list[str]) -> list[str]:
        """Return the symbols that contain any of the strings."""
        return [self.sym_table[number] for number in self.find_matches(patterns)]

    def matching(self, expression: str | re.Pattern[str]) -> set[int]:
        """Return the ids of the symbols whose start matches a regular expression."""
        found = re.compile(expression)
        return {number for number, symbol in enumerate(self.sym_table) if found.match(symbol)}

    def add_symbols_to_trace_df(self, trace_df: pd.DataFrame, col: str) -> None:
        """Replace the ids in a column with their symbols, in place; unknown ids become ``""``."""
        trace_df[col] = self._texts(trace_df[col])

    def decode_df(self, df: pd.DataFrame, create_new_columns: bool = True) -> None:
        """Decode the ids in ``name`` and ``cat`` to ``s_name`` and ``s_cat``, or in place."""
        for column in ("name", "cat"):
            if column in df and pd.api.types.is_integer_dtype(df[column]):
                df[f"s_{column}" if create_new_columns else column] = self._texts(df[column])

    def _texts(self, numbers: pd.Series, symbols: list[str] | None = None) -> pd.Series:
        symbols = self.sym_table if symbols is None else symbols
        texts = [symbols[n] if 0 <= n < len(symbols) else "" for n in numbers]
        return pd.Series(texts, index=numbers.index, dtype=object)


def decode_symbol_id_to_symbol_name(
    df: pd.DataFrame, symbol_table: TraceSymbolTable, use_shorten_name: bool
) -> None:
    """Add ``s_name``, ``s_cat`` and ``s_user_annotation`` to a frame; -1 becomes ``""``.

    Args:
        df: Frame with symbol ids in ``name``, ``cat`` and optionally ``user_annotation``.
        symbol_table: Symbol table of the ids.
        use_shorten_name: Drop template and call arguments, and return types.
    """
    symbols = symbol_table.sym_table
    if use_shorten_name:
        short = short_names(symbols)
        symbols = [short[symbol] for symbol in symbols]
    for column in ("name", "cat", "user_annotation"):
        if column in df and pd.api.types.is_integer_dtype(df[column]):
            df[f"s_{column}"] = symbol_table._texts(df[column], symbols)  # noqa: SLF001 - same module
