"""Filters by operators: what runs under, after or before the n-th call of one.

The same selections in SQL stand in docs/filters.md.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import ClassVar

import pandas as pd

from hta_sql.hta.common.trace_df import find_op_occurrence
from hta_sql.hta.common.trace_filter import Filter, FirstIterationFilter, text_columns
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable

__all__ = [
    "AfterOperatorFilter",
    "BeforeOperatorFilter",
    "CombinedOperatorFilter",
    "OperatorFilter",
    "OperatorFilterMethod",
    "UnderOperatorFilter",
]

log = logging.getLogger(__name__)


class OperatorFilterMethod(Enum):
    """How events lie to the operator: all of them by time, on the host or on its stream."""

    Under = 0
    After = 1
    Before = 2
    Ancestors = 3
    Stack = 4


class OperatorFilter(Filter):
    """Events that lie under, after, before or around the n-th call of an operator, by time.

    Args:
        op_name: Name of the operator or annotation: ``## forward ##``.
        position: Which call of it, from 0 on; -1 is the last one.
        method: Under: start and end lie in it. After: they start when it has ended. Before: they
            end before it starts. Ancestors: they enclose it. Stack: Under and Ancestors.
        include_gpu_kernels: Also keep what the kept calls launched.
        name_column: Column with names as text; default: ``name`` or ``s_name``.

    An operator that does not occur gives an empty frame.
    """

    def __init__(
        self,
        op_name: str,
        position: int,
        method: OperatorFilterMethod,
        include_gpu_kernels: bool = False,
        name_column: str | None = None,
    ) -> None:
        self.op_name = op_name
        self.position = position
        self.method = method
        self.include_gpu_kernels = include_gpu_kernels
        self.name_column = name_column or ""

    def __call__(
        self,
        df: pd.DataFrame,
        symbol_table: TraceSymbolTable | None = None,  # noqa: ARG002 - the filters' interface
    ) -> pd.DataFrame:
        """Keep events by where they lie."""
        name_column = self.name_column or text_columns(df)[0]
        if name_column not in df:
            log.warning("The frame has no names as text: call decode_symbol_ids() first.")
            return df
        found, op = find_op_occurrence(df, self.op_name, self.position, name_column)
        if not found:
            log.warning("There is no call %d of %r.", self.position, self.op_name)
            return df.iloc[:0]
        kept: pd.DataFrame = df.loc[self._lies(df, op) & (df["stream"] == op["stream"])]
        return pd.concat([kept, launched_by(kept, df)]) if self.include_gpu_kernels else kept

    def _lies(self, df: pd.DataFrame, op: pd.Series) -> pd.Series:
        start, end = df["ts"], df["ts"] + df["dur"]
        op_start, op_end = op["ts"], op["ts"] + op["dur"]
        under = (start >= op_start) & (end <= op_end)
        around = (start <= op_start) & (end >= op_end)
        choices: dict[OperatorFilterMethod, pd.Series] = {
            OperatorFilterMethod.Under: under,
            OperatorFilterMethod.After: start >= op_end,
            OperatorFilterMethod.Before: end <= op_start,
            OperatorFilterMethod.Ancestors: around,
            OperatorFilterMethod.Stack: under | around,
        }
        return choices[self.method]


class _RelatedFilter(OperatorFilter):
    """An operator filter whose relation to the operator is that of its class."""

    _relation: ClassVar[OperatorFilterMethod]

    def __init__(
        self,
        op_name: str,
        position: int,
        include_gpu_kernels: bool = False,
        name_column: str | None = None,
    ) -> None:
        super().__init__(op_name, position, self._relation, include_gpu_kernels, name_column)


class UnderOperatorFilter(_RelatedFilter):
    """Events that start and end inside the n-th call of an operator, and that call."""

    _relation = OperatorFilterMethod.Under


class AfterOperatorFilter(_RelatedFilter):
    """Events that start when the n-th call of an operator has ended, or later."""

    _relation = OperatorFilterMethod.After


class BeforeOperatorFilter(_RelatedFilter):
    """Events that have ended when the n-th call of an operator starts."""

    _relation = OperatorFilterMethod.Before


class CombinedOperatorFilter(Filter):
    """Events of the first step under one operator, after a second and before a third.

    Args:
        root_op_name: They lie under its first call.
        preceding_op_name: They start after its last call under the root has ended.
        following_op_name: They end before its first call after that starts.
        include_gpu_kernels: Also keep what the kept calls launched.
        stack_depths: Keep these depths only, in a frame with a column ``depth``.

    A name that does not occur does not restrict anything.
    """

    def __init__(
        self,
        root_op_name: str,
        preceding_op_name: str,
        following_op_name: str,
        include_gpu_kernels: bool = False,
        stack_depths: list[int] | None = None,
    ) -> None:
        self.root_op_name = root_op_name
        self.preceding_op_name = preceding_op_name
        self.following_op_name = following_op_name
        self.include_gpu_kernels = include_gpu_kernels
        self.stack_depths = stack_depths or []

    def __call__(
        self,
        df: pd.DataFrame,
        symbol_table: TraceSymbolTable | None = None,  # noqa: ARG002 - the filters' interface
    ) -> pd.DataFrame:
        """Keep these events."""
        name_column = text_columns(df)[0]
        if not name_column:
            log.warning("The frame has no names as text: call decode_symbol_ids() first.")
            return df
        kept = FirstIterationFilter()(df)
        for filter_ in (
            UnderOperatorFilter(self.root_op_name, 0),
            AfterOperatorFilter(self.preceding_op_name, -1),
            BeforeOperatorFilter(self.following_op_name, 0),
        ):
            if find_op_occurrence(kept, filter_.op_name, filter_.position, name_column)[0]:
                kept = filter_(kept)
        if self.include_gpu_kernels:
            kept = pd.concat([launched_by(kept, df), kept])
        if self.stack_depths and "depth" in kept:
            kept = kept.loc[(kept["stream"] >= 0) | kept["depth"].isin(self.stack_depths)]
        return kept


def launched_by(df_ops: pd.DataFrame, df: pd.DataFrame) -> pd.DataFrame:
    """Return the device operations in ``df`` whose launch is among the events ``df_ops``."""
    # The correlation id as well: an index_correlation of 0 may also mean that it is not known.
    linked = df["index_correlation"].isin(df_ops["index"])
    linked &= df["correlation"].isin(df_ops["correlation"]) & (df["stream"] >= 0)
    return df.loc[linked & (df["correlation"] >= 0)]
