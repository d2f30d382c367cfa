"""Scales numbers for reading, by the unit that an analysis documents for their column."""

from __future__ import annotations

import pandas as pd

from hta_sql.library.declared import Column
from hta_sql.text import duration_unit, size_unit


def scaled(
    values: pd.Series[float], column: Column, most: float | None = None
) -> tuple[pd.Series[float], str, str]:
    """Return numbers in a readable unit.

    Args:
        values: Numbers in the unit of the column.
        column: Documented column.
        most: Number that determines the unit; default: the largest of the values.

    Returns:
        The numbers, the unit to append to their label (empty if none), and their format.
    """
    numbers = values.astype(float)
    if column.unit in ("ns", "bytes"):
        largest = float(numbers.abs().max()) if most is None else most
        size, unit = (duration_unit if column.unit == "ns" else size_unit)(largest)
        return numbers / size, f" [{unit}]", ",.3f"
    if column.unit == "%":
        return numbers / 100, "", ".2%"
    return numbers, "", ",.4~g" if column.type == "DOUBLE" else ","
