"""Compare our HTA-shaped frames with HTA's own, cell by cell.

A cell is one value in one row of a frame. Rows are matched by their key columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from hta_sql import TraceStore
from tests.parity.hta_answers import FRAMES, KEY_OF_PAIRS, KEYS, chosen, hta_frame
from tests.parity.our_answers import our_frames
from tests.parity.reasons import reason_of_nothing

FLOAT_US = 0.0005
"""Tolerance [us]: HTA computes float64 microseconds, whose error is up to half a nanosecond."""

POINTS = {"memory_bw_time_series": ["rank", "name"], "queue_length_time_series": ["rank", "stream"]}
"""Series in which only the last value at each time is compared."""

ZERO = """
SELECT min(ts) FROM (
    SELECT e.ts FROM events AS e
    WHERE e.run = $run AND e.dur IS NOT NULL AND e.table_name <> 'other_events'
    UNION ALL
    SELECT o.ts FROM other_events AS o
    WHERE o.run = $run AND o.dur IS NOT NULL AND o.category <> 'Trace'
)
"""
"""Query for the offset between HTA's times and ours [ns].

HTA's times start at the first event that it keeps, ours at the first event in the traces.
"""


@dataclass(frozen=True)
class Line:
    """Cells in a column of a frame for which the comparison has the same result.

    Values of ``kind``:

    - equal: the values are equal
    - value: both frames have the row, and the values differ
    - hta_only, ours_only: only one frame has the row (column ``*``)
    - none: neither frame has rows, and ``reason`` says why
    - hta_crash: HTA crashed; ``cells`` counts our cells, or ``reason`` says why there are none

    ``differing`` has a text for each cell that differs: its key, and both values.
    """

    job: str
    frame: str
    column: str
    kind: str
    cells: int
    reason: str = ""
    differing: tuple[str, ...] = ()


def lines_of_job(store: TraceStore, job: str) -> list[Line]:
    """Compare all frames of a job; our frames are computed even if HTA crashed."""
    ours = our_frames(Path(store.path), job)
    lines: list[Line] = []
    for frame in FRAMES:
        lines += lines_of_frame(store, job, frame, ours[frame])
    return lines


def lines_of_frame(store: TraceStore, job: str, frame: str, ours: pd.DataFrame) -> list[Line]:
    """Compare one frame, or state the reason if there is nothing to compare."""
    hta = hta_frame(job, frame)
    if hta is not None and (len(hta) or len(ours)):
        if "ts" in hta.columns and len(ours):
            ((zero,),) = store.sql(ZERO, {"run": job}).rows()
            ours = ours.assign(ts=(ours["ts"] * 1000 - zero) / 1000)
        return compare(job, frame, ours, hta)
    kind = "none" if hta is not None else "hta_crash"
    reason = "" if len(ours) else reason_of_nothing(store, job, frame)
    return [Line(job, frame, "*", kind, ours.size, reason)]


def compare(job: str, frame: str, ours: pd.DataFrame, hta: pd.DataFrame) -> list[Line]:
    """Match the rows of two frames by key and compare all other columns."""
    left, right = _keyed(frame, ours), _keyed(frame, hta)
    both = left.index.intersection(right.index)
    left_both, right_both = left.reindex(both), right.reindex(both)
    columns = [column for column in right.columns if column in left.columns]
    lines: list[Line] = []
    for column in columns:
        a, b = left_both[column], right_both[column]
        if pd.api.types.is_numeric_dtype(b):
            a, b = a.astype(float), b.astype(float)
            far = (a - b).abs() > _tolerance(frame, column) + 1e-6 * _is_rate(column) * b.abs()
            same = ~far & (a.isna() == b.isna())
        else:
            same = (a == b) | (a.isna() & b.isna())
        lines += _line((job, frame, column, "value"), both[~same.to_numpy(dtype=bool)], (a, b))
    unequal = sum(line.cells for line in lines)
    lines += _line((job, frame, "*", "ours_only"), left.index.difference(right.index))
    lines += _line((job, frame, "*", "hta_only"), right.index.difference(left.index))
    equal = len(both) * len(columns) - unequal
    if not columns:
        equal = len(both)
    return [Line(job, frame, "*", "equal", equal), *lines]


def _keyed(frame: str, table: pd.DataFrame) -> pd.DataFrame:
    keys = KEYS.get(frame, KEY_OF_PAIRS)
    if table.empty:
        return pd.DataFrame(columns=pd.Index(keys)).set_index(keys)
    table = chosen(frame, table)
    if frame in POINTS:
        lane = POINTS[frame]
        table = table.sort_values("ts", kind="stable").drop_duplicates([*lane, "ts"], keep="last")
        if "point" in keys:
            table = table.assign(point=table.groupby(lane).cumcount())
    if "occurrence" in keys:
        # A graph launch has one correlation and many kernels, whose order is arbitrary.
        table = table.sort_values([c for c in table.columns if c != "op_stack"], kind="stable")
        table = table.assign(occurrence=table.groupby(keys[:-1], dropna=False).cumcount())
    for key in keys:
        column = table[key]
        if key == "event_idx":
            column = column.astype(float).fillna(-1).astype("int64")
        table = table.assign(**{key: column.astype(str)})
    keyed = table.set_index(keys)
    assert not keyed.index.has_duplicates, f"{frame}: {keys} do not identify a row"
    return keyed


def _is_rate(column: str) -> bool:
    """Return whether HTA computes a column from sums of floats, whose order differs from ours."""
    return column.startswith(("memory_bw", "queue_length_", "cp_weight", "pct", "relative"))


def _tolerance(frame: str, column: str) -> float:
    # We round if HTA does, and the error of its floats can change the last digit.
    if frame == "gpu_kernel_breakdown_all_types":
        return 0.1 + 1e-9 if column == "percentage" else FLOAT_US
    if frame == "aten_op_kernels_and_delay":
        return 0.001 + FLOAT_US
    if column.endswith("pctg") or frame.startswith("idle"):
        return 0.01 + 1e-9
    if column == "pct":
        return 0.001
    if _is_rate(column):
        return 1e-9
    return FLOAT_US


def _line(
    key: tuple[str, str, str, str],
    keys: pd.Index,
    values: tuple[pd.Series, pd.Series] | None = None,
) -> list[Line]:
    if not len(keys):
        return []
    names = ["/".join(key) if isinstance(key, tuple) else str(key) for key in keys]
    if values is not None:
        ours, hta = ([_text(value) for value in side.loc[keys]] for side in values)
        pairs = zip(names, hta, ours, strict=True)
        names = [f"{name}: HTA {theirs}, hta_sql {mine}" for name, theirs, mine in pairs]
    return [Line(*key, len(keys), differing=tuple(sorted(names)))]


def _text(value: object) -> str:
    """Format a value; six digits are the same in every order in which floats are added."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
