"""The numbers that stand for names and categories in HTA's frames."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

from hta_sql.hta.names import shorten_name

__all__ = ["TraceSymbolTable", "decode_symbol_id_to_symbol_name"]


class TraceSymbolTable:
    """A list of symbols and the number of each; numbers never change once given.

    Attributes:
        sym_table: Symbol of each number.
        sym_index: Number of each symbol.
    """

    def __init__(self, symbols: Iterable[str] = ()) -> None:
        self.sym_table: list[str] = []
        self.sym_index: dict[str, int] = {}
        self.add_symbols(symbols)

    def add_symbols(self, symbols: Iterable[str]) -> None:
        """Number the symbols that have no number yet."""
        for symbol in symbols:
            if symbol not in self.sym_index:
                self.sym_index[symbol] = len(self.sym_table)
                self.sym_table.append(symbol)

    def is_empty(self) -> bool:
        """Say whether there is no symbol."""
        return not self.sym_table

    def get_sym_id_map(self) -> dict[str, int]:
        """Return {symbol: number}."""
        return self.sym_index

    def get_sym_index(self) -> dict[str, int]:
        """Return {symbol: number}."""
        return self.sym_index

    def get_sym_table(self) -> list[str]:
        """Return the symbols in order of their numbers."""
        return self.sym_table

    def find_matches(self, patterns: list[str]) -> list[int]:
        """List the numbers of the symbols that contain one of the texts."""
        found = re.compile("|".join(map(re.escape, patterns)))
        return [number for number, symbol in enumerate(self.sym_table) if found.search(symbol)]

    def find_matched_symbols(self, patterns: list[str]) -> list[str]:
        """List the symbols that contain one of the texts."""
        return [self.sym_table[number] for number in self.find_matches(patterns)]

    def matching(self, expression: str) -> set[int]:
        """Return the numbers of the symbols that an expression matches from their start on."""
        found = re.compile(expression)
        return {number for number, symbol in enumerate(self.sym_table) if found.match(symbol)}

    @staticmethod
    def create_from_df(df: pd.DataFrame) -> TraceSymbolTable:
        """Number the texts in ``name`` and ``cat`` of a frame, in alphabetical order."""
        return TraceSymbolTable(sorted({*df["name"], *df["cat"]}))

    @staticmethod
    def clone(symbol_table: TraceSymbolTable) -> TraceSymbolTable:
        """Copy a table."""
        return TraceSymbolTable(symbol_table.sym_table)

    @staticmethod
    def combine_symbol_tables(tables: list[TraceSymbolTable]) -> TraceSymbolTable:
        """Number the symbols of several tables anew."""
        return TraceSymbolTable(symbol for table in tables for symbol in table.sym_table)

    def encode_df(self, df: pd.DataFrame) -> None:
        """Replace the texts in ``name`` and ``cat`` by their numbers, in place."""
        for column in ("name", "cat"):
            if column in df and not pd.api.types.is_integer_dtype(df[column]):
                df[column] = df[column].map(self.sym_index).astype("int64")

    def decode_df(self, df: pd.DataFrame, create_new_columns: bool = True) -> None:
        """Write the texts of ``name`` and ``cat`` to ``s_name`` and ``s_cat``, or over them."""
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
    """Add ``s_name`` and ``s_cat`` (and ``s_user_annotation``) to a frame; -1 becomes ``""``.

    Args:
        df: A frame with numbers in ``name``, ``cat`` and, maybe, ``user_annotation``.
        symbol_table: What the numbers stand for.
        use_shorten_name: Leave out template and call arguments, and return types.
    """
    symbols = symbol_table.sym_table
    if use_shorten_name:
        symbols = [shorten_name(symbol) for symbol in symbols]
    for column in ("name", "cat", "user_annotation"):
        if column in df and pd.api.types.is_integer_dtype(df[column]):
            df[f"s_{column}"] = symbol_table._texts(df[column], symbols)  # noqa: SLF001 - same module
