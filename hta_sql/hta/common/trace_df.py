"""HTA's small questions to a trace frame."""

from __future__ import annotations

import pandas as pd

from hta_sql.errors import ParameterError
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable

__all__ = [
    "find_events_by_name_patterns_using_decoded_names",
    "find_events_by_name_patterns_using_symbol_table",
    "find_op_occurrence",
    "get_cpu_gpu_correlation",
    "get_iterations",
]


def get_iterations(df: pd.DataFrame) -> list[int]:
    """List the profiler steps in a frame.

    Raises:
        ParameterError: The frame has no column ``iteration`` of numbers.
    """
    if "iteration" not in df or not pd.api.types.is_numeric_dtype(df["iteration"]):
        raise ParameterError(
            "The frame has no column 'iteration' of numbers; take Trace.get_trace."
        )
    return sorted(int(step) for step in df["iteration"].unique() if step >= 0)


def find_op_occurrence(
    df: pd.DataFrame, op_name: str, position: int, name_column: str = "s_name"
) -> tuple[bool, pd.Series]:
    """Find the n-th event of a name in order of its start; -1 is the last one.

    Returns:
        Whether there is one, and its row (empty if not). Equal starts: the order of the frame.
    """
    if df.empty or name_column not in df:
        return False, pd.Series(dtype=object)
    found = df.loc[df[name_column] == op_name].sort_values("ts", kind="stable")
    if not -len(found) <= position < len(found):
        return False, pd.Series(dtype=object)
    return True, found.iloc[position]


def find_events_by_name_patterns_using_symbol_table(
    df: pd.DataFrame, list_name_patterns: list[str], symbol_table: TraceSymbolTable
) -> pd.Series:
    """Return ``index`` of the events whose name one of the expressions matches from its start."""
    numbers = {n for pattern in list_name_patterns for n in symbol_table.matching(pattern)}
    return df.loc[df["name"].isin(numbers), "index"]


def find_events_by_name_patterns_using_decoded_names(
    df: pd.DataFrame, list_name_patterns: list[str], name_column: str = "s_name"
) -> pd.Series:
    """Return ``index`` of the events whose name one of the expressions matches from its start."""
    found = pd.Series(False, index=df.index)
    for pattern in list_name_patterns:
        found |= df[name_column].str.match(pattern)
    return df.loc[found, "index"]


def get_cpu_gpu_correlation(df: pd.DataFrame) -> pd.DataFrame:
    """List device activity with the call that launched it: ``gpu_index, cpu_index``."""
    linked = df[(df["stream"] >= 0) & (df["index_correlation"] > 0)]
    columns = {"gpu_index": linked["index"], "cpu_index": linked["index_correlation"]}
    return pd.DataFrame(columns).reset_index(drop=True)
