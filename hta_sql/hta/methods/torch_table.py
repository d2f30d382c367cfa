"""Render the table of torch's profiler with identical columns, widths, units and footer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from hta_sql.hta.methods.function_average import FunctionAverage

TimeUnit = Literal["s", "ms", "us"]

US_OF: dict[str, float] = {"s": 1e6, "ms": 1e3, "us": 1.0}
"""Unit of time ─▶ microseconds."""

NUMBER = 12
"""Width of a numeric column."""

FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


@dataclass(frozen=True)
class Layout:
    """Layout of a table.

    Attributes:
        row_limit: Number of rows to print; -1: all.
        source_width: Maximum characters of a stack line; None: unlimited.
        name_width: Maximum characters of a name; None: unlimited.
        shapes_width: Maximum characters of input shapes; None: unlimited.
        header: A line above the table; None: no line.
        time_unit: Unit of all times; None: the best unit for each.
    """

    row_limit: int = 100
    source_width: int | None = 75
    name_width: int | None = 55
    shapes_width: int | None = 80
    header: str | None = None
    time_unit: TimeUnit | None = None

    def time(self, us: float) -> str:
        """Format a time."""
        unit = self.time_unit or ("s" if us >= US_OF["s"] else "ms" if us >= US_OF["ms"] else "us")
        return f"{us / US_OF[unit]:.3f}{unit}"

    def name(self, text: str) -> str:
        """Return a name, truncated if it is too long."""
        if self.name_width is not None and len(text) >= self.name_width - 3:
            return text[: self.name_width - 3] + "..."
        return text


@dataclass(frozen=True)
class Column:
    """A column: its title, its width, and the function that renders a row's cell."""

    title: str
    width: int
    cell: Callable[[FunctionAverage], str]


def memory_text(size: int) -> str:
    """Format bytes like torch."""
    for unit, name in ((1024**3, "GB"), (1024**2, "MB"), (1024, "KB")):
        if abs(size) >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} B"


def print_table(rows: Sequence[FunctionAverage], layout: Layout, *, with_memory: bool) -> str:
    """Render rows in their order.

    Args:
        rows: All rows. Widths, shares and sums also cover the rows that are not printed.
        layout: Widths, units and limits.
        with_memory: Whether memory was recorded.
    """
    if not rows:
        return ""
    host_us = sum(row.self_cpu_time_total for row in rows)
    device_us = sum(
        row.self_device_time_total
        for row in rows
        if row.device_type != "DeviceType.CPU" and not row.is_user_annotation
    )
    on_device = any(row.self_device_time_total > 0 for row in rows)
    columns = [*_names(rows, layout), *_times(layout, host_us)]
    columns += _device_times(rows, layout, device_us) if on_device else []
    columns += _memory(rows) if with_memory else []
    columns += [Column("# of Calls", NUMBER, lambda row: str(row.count)), *_shapes(rows, layout)]
    lines = _lines(rows, columns, layout)
    lines.append(f"Self CPU time total: {layout.time(host_us)}")
    if on_device:
        lines.append(f"Self {_device(rows)} time total: {layout.time(device_us)}")
    return "\n".join(lines) + "\n"


def _lines(rows: Sequence[FunctionAverage], columns: list[Column], layout: Layout) -> list[str]:
    """Return all lines except the totals.

    If both FLOPs and stacks are present, torch swaps their columns; so does this function.
    """
    flops = _flops(rows)
    source = _source_width(rows, layout)
    titles = [column.title for column in columns]
    formats = [f"{{: >{column.width}}}  " for column in columns]
    rule = "".join("-" * column.width + "  " for column in columns)
    if source is not None:
        titles.append("Source Location")
        formats.append(f"{{: <{source}}}  ")
        rule += "-" * source + "  "
    if flops is not None:
        titles.append(flops.title)
        formats.append(f"{{: >{NUMBER}}}  ")
        rule += "-" * NUMBER + "  "
    line = "".join(formats)
    lines = [] if layout.header is None else ["=" * (len(rule) - 2), layout.header]
    lines += [rule, line.format(*titles), rule]
    for row in rows if layout.row_limit < 0 else rows[: layout.row_limit]:
        cells = [column.cell(row) for column in (*columns, *([flops] if flops else []))]
        if source is None:
            lines.append(line.format(*cells))
            continue
        first, *more = row.stack or [""]
        lines.append(line.format(*cells, _end(first, source)))
        blank = [""] * (len(titles) - 1)
        lines += [line.format(*blank, _end(frame, source)) for frame in (*more, "")]
    return [*lines, rule]


def _names(rows: Sequence[FunctionAverage], layout: Layout) -> list[Column]:
    width = max(len(row.key) for row in rows) + 4
    if layout.name_width is not None:
        width = min(width, layout.name_width)
    columns = [Column("Name", width, lambda row: layout.name(row.key))]
    if any(row.overload_name for row in rows):
        columns.append(Column("Overload Name", width, lambda row: layout.name(row.overload_name)))
    return columns


def _times(layout: Layout, host_us: float) -> list[Column]:
    return [
        Column("Self CPU %", NUMBER, lambda row: _share(row.self_cpu_time_total, host_us)),
        Column("Self CPU", NUMBER, lambda row: layout.time(row.self_cpu_time_total)),
        Column(
            "CPU total %",
            NUMBER,
            lambda row: "0" if row.is_async else _share(row.cpu_time_total, host_us),
        ),
        Column("CPU total", NUMBER, lambda row: layout.time(row.cpu_time_total)),
        Column("CPU time avg", NUMBER, lambda row: layout.time(row.cpu_time)),
    ]


def _device_times(
    rows: Sequence[FunctionAverage], layout: Layout, device_us: float
) -> list[Column]:
    device = _device(rows)
    return [
        Column(f"Self {device}", NUMBER, lambda row: layout.time(row.self_device_time_total)),
        Column(
            f"Self {device} %", NUMBER, lambda row: _share(row.self_device_time_total, device_us)
        ),
        Column(f"{device} total", NUMBER, lambda row: layout.time(row.device_time_total)),
        Column(f"{device} time avg", NUMBER, lambda row: layout.time(row.device_time)),
    ]


def _memory(rows: Sequence[FunctionAverage]) -> list[Column]:
    columns = [
        Column("CPU Mem", NUMBER, lambda row: memory_text(row.cpu_memory_usage)),
        Column("Self CPU Mem", NUMBER, lambda row: memory_text(row.self_cpu_memory_usage)),
    ]
    device = _device(rows)
    if device != "None" and any(row.self_device_memory_usage > 0 for row in rows):
        columns += [
            Column(f"{device} Mem", NUMBER, lambda row: memory_text(row.device_memory_usage)),
            Column(
                f"Self {device} Mem",
                NUMBER,
                lambda row: memory_text(row.self_device_memory_usage),
            ),
        ]
    return columns


def _shapes(rows: Sequence[FunctionAverage], layout: Layout) -> list[Column]:
    if not any(row.input_shapes for row in rows):
        return []
    width = max(len(str(row.input_shapes)) for row in rows) + 4
    if layout.shapes_width is not None:
        width = min(width, layout.shapes_width)
    return [Column("Input Shapes", width, lambda row: str(row.input_shapes)[:width])]


def _flops(rows: Sequence[FunctionAverage]) -> Column | None:
    """Return the FLOPs column in the unit of the smallest value, or None without FLOPs."""
    counts = [row.flops for row in rows if row.flops > 0]
    if not counts:
        return None
    power = min(math.floor(math.log10(min(counts)) / 3), len(FLOPS) - 1)
    return Column(
        f"Total {FLOPS[power]}",
        NUMBER,
        lambda row: f"{row.flops * 10 ** (power * -3.0):8.3f}" if row.flops > 0 else "--",
    )


def _source_width(rows: Sequence[FunctionAverage], layout: Layout) -> int | None:
    frames = [len(frame) for row in rows for frame in row.stack]
    if not frames:
        return None
    width = max(frames) + 4
    return width if layout.source_width is None else min(width, layout.source_width)


def _end(text: str, width: int) -> str:
    return text if len(text) <= width else "..." + text[len(text) - width + 3 :]


def _share(part: float, whole: float) -> str:
    return f"{part * 100.0 / whole:.2f}%" if whole else "NaN"


def _device(rows: Sequence[FunctionAverage]) -> str:
    return str(rows[0].use_device).upper() if rows[0].use_device else "None"
