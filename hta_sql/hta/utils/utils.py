"""Provide HTA's helpers that shorten names and flatten column names."""

from __future__ import annotations

import pandas as pd

from hta_sql.library.names import short_names

__all__ = ["flatten_column_names", "shorten_name"]


def flatten_column_names(df: pd.DataFrame) -> None:
    """Join the levels of column names with ``_``, in place."""
    if isinstance(df.columns, pd.MultiIndex):
        df.columns = pd.Index(["_".join(map(str, levels)).rstrip("_") for levels in df.columns])


def shorten_name(name: str) -> str:
    """Return a name without template arguments, call arguments and return type."""
    return short_names([name])[name]
