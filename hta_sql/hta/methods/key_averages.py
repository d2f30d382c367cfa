"""Compute torch's ``key_averages()`` from a trace: its rows, names, units and printed table."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

import pandas as pd

from hta_sql.errors import ParameterError, nearest
from hta_sql.hta.methods.function_average import FunctionAverage
from hta_sql.hta.methods.job import Job
from hta_sql.hta.methods.torch_table import Layout, TimeUnit, print_table

NS_PER_US = 1000


COLUMNS = [field.name for field in dataclasses.fields(FunctionAverage)]

SORT_KEYS = [*(name for name in COLUMNS if name != "use_device"), "cpu_time", "device_time"]
"""Attributes that rows can be sorted by, because they are set in every row."""


class FunctionAverages(list[FunctionAverage]):
    """Rows in the order of their first calls, like torch's ``EventList``.

    Args:
        rows: The rows.
        with_memory: Whether memory was recorded.
    """

    def __init__(self, rows: Iterable[FunctionAverage], *, with_memory: bool) -> None:
        super().__init__(rows)
        self._with_memory = with_memory

    def __str__(self) -> str:
        """Return the table."""
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """Total time on the host [µs]."""
        return sum(row.self_cpu_time_total for row in self)

    def table(  # noqa: PLR0917 - the signature of torch
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        *,
        time_unit: TimeUnit | None = None,
    ) -> str:
        """Return the table that torch prints.

        Args:
            sort_by: Attribute to sort by, highest first, such as ``self_cpu_time_total``. In names,
                cuda and xpu are aliases of device. Default: order of first calls.
            row_limit: Number of rows to print; -1: all.
            max_src_column_width: Maximum characters of a stack line; None: unlimited.
            max_name_column_width: Maximum characters of a name; None: unlimited.
            max_shapes_column_width: Maximum characters of input shapes; None: unlimited.
            header: A line above the table.
            time_unit: s, ms or us for all times; default: the best unit for each.

        Raises:
            ParameterError: The attribute or the unit does not exist.
        """
        if time_unit not in {None, "s", "ms", "us"}:
            raise ParameterError(f"time_unit must be s, ms or us, not {time_unit!r}.")
        layout = Layout(
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            time_unit,
        )
        rows = self if sort_by is None else self._sorted(sort_by)
        return print_table(rows, layout, with_memory=self._with_memory)

    def _sorted(self, sort_by: str) -> list[FunctionAverage]:
        key = sort_by
        for vendor in ("cuda", "xpu", "privateuse1"):
            key = key.replace(vendor, "device")
        if key not in SORT_KEYS:
            raise ParameterError(f"Cannot sort by {sort_by!r}.{nearest(key, SORT_KEYS)}")
        return sorted(self, key=lambda row: getattr(row, key), reverse=True)

    def df(self) -> pd.DataFrame:
        """Return a frame with a row for each key and a column for each attribute."""
        return pd.DataFrame([dataclasses.astuple(row) for row in self], columns=COLUMNS)


class KeyAverages(Job):
    """Methods of TraceAnalysis: torch's operator table."""

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        rank: int = 0,
    ) -> FunctionAverages:
        """Return the rows of ``torch.profiler.profile.key_averages()`` for the recorded trace.

        The whole capture counts, including its last step, like in torch.

        Args:
            group_by_input_shape: Whether calls with different input shapes are separate rows.
            group_by_stack_n: Number of innermost Python frames to group calls by.
            group_by_overload_name: Whether overloads are separate rows.
            rank: Rank to analyze.

        Returns:
            A list of :class:`FunctionAverage` (µs, bytes), with ``table(…)`` and ``df()``.

        Raises:
            RankError: The rank does not exist.
        """
        result = self.scoped(include_last_profiler_step=True).result(
            "operator_table_v1",
            self._default_ranks([rank]),
            by_shapes=group_by_input_shape,
            stack_frames=group_by_stack_n,
            by_overload=group_by_overload_name,
            like_torch=True,
        )
        rows = result.arrow().to_pylist()
        device = "cuda" if any(row["side"] == "device" for row in rows) else None
        with_memory = any(row["host_total_bytes"] is not None for row in rows)
        return FunctionAverages((_average(row, device) for row in rows), with_memory=with_memory)


def _average(row: dict[str, Any], device: str | None) -> FunctionAverage:
    """Convert a row of ``operator_table`` to torch's names and units."""
    return FunctionAverage(
        key=row["name"],
        count=row["call_count"],
        cpu_time_total=row["host_total_ns"] / NS_PER_US,
        self_cpu_time_total=row["host_self_ns"] / NS_PER_US,
        device_time_total=row["device_total_ns"] / NS_PER_US,
        self_device_time_total=row["device_self_ns"] / NS_PER_US,
        cpu_memory_usage=row["host_total_bytes"] or 0,
        self_cpu_memory_usage=row["host_self_bytes"] or 0,
        device_memory_usage=row["device_total_bytes"] or 0,
        self_device_memory_usage=row["device_self_bytes"] or 0,
        flops=row["flops"] or 0,
        input_shapes="" if row["input_shapes"] is None else json.loads(row["input_shapes"]),
        stack=[] if row["stack"] is None else json.loads(row["stack"]),
        overload_name=row["overload_name"] or "",
        is_async=row["is_user_annotation"] and row["name"].startswith("gloo:"),
        is_user_annotation=row["is_user_annotation"],
        use_device=device,
        device_type="DeviceType.CUDA" if row["side"] == "device" else "DeviceType.CPU",
    )
