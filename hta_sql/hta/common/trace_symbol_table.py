"""Map the symbol ids in HTA's frames to names and categories."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

from hta_sql.library.names import short_names

__all__ = ["TraceSymbolTable", "decode_symbol_id_to_symbol_name"]


class TraceSymbolTable:
    """Distinct symbols, each with an id.

    Args:
        symbols: The symbols, ordered by id.

    Attributes:
        sym_table: Symbols, indexed by id.
        sym_index: ``{symbol: id}``.
    """

    def __init__(self, symbols: Iterable[str] = ()) -> None:
        self.sym_table: list[str] = list(dict.fromkeys(symbols))
        self.sym_index: dict[str, int] = {s: n for n, s in enumerate(self.sym_table)}

    def get_sym_id_map(self) -> dict[str, int]:
        """Return {symbol: id}."""
        return self.sym_index

    def get_sym_table(self) -> list[str]:
        """Return the symbols, ordered by id."""
        return self.sym_table

    def matching(self, expression: str) -> set[int]:
        """Return the ids of the symbols whose start matches a regular expression."""
        found = re.compile(expression)
        return {number for number, symbol in enumerate(self.sym_table) if found.match(symbol)}

    def add_symbols_to_trace_df(self, trace_df: pd.DataFrame, col: str) -> None:
        """Replace the ids in a column with their symbols, in place; unknown ids become ``""``."""
        trace_df[col] = _texts(trace_df[col], self.sym_table)

    def decode_df(self, df: pd.DataFrame) -> None:
        """Replace the ids in ``name`` and ``cat`` with their symbols, in place."""
        for column in ("name", "cat"):
            if column in df and pd.api.types.is_integer_dtype(df[column]):
                self.add_symbols_to_trace_df(df, column)


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
            df[f"s_{column}"] = _texts(df[column], symbols)


def _texts(numbers: pd.Series, symbols: list[str]) -> pd.Series:
    texts = [symbols[n] if 0 <= n < len(symbols) else "" for n in numbers]
    return pd.Series(texts, index=numbers.index, dtype=object)
