"""Add the rows of the analysis ``event_arguments`` to HTA's trace frame as additional columns."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from hta_sql.hta.configs.default_values import AttributeSpec, ValueType

_CASTS: dict[ValueType, type] = {ValueType.Int: int, ValueType.Float: float}


def add_arguments(frame: pd.DataFrame, table: pa.Table, specs: Iterable[AttributeSpec]) -> None:
    """Add a column for each argument, in place.

    Args:
        frame: Frame of a rank, indexed by event.
        table: Rows of the analysis ``event_arguments`` for the rank.
        specs: Arguments and their columns.
    """
    rows = table.select(["event_id", "argument", "value_json"]).to_pandas()
    values = {str(name): group for name, group in rows.groupby("argument")}
    for spec in specs:
        frame[spec.name] = _column(frame.index, values.get(spec.raw_name), spec)


def _column(index: pd.Index, found: pd.DataFrame | None, spec: AttributeSpec) -> pd.Series:
    column = np.full(len(index), spec.default_value, dtype=object)
    if found is not None:
        places = index.get_indexer(pd.Index(found["event_id"]))
        known = {text: _value(text, spec) for text in found["value_json"].unique()}
        for place, text in zip(places.tolist(), found["value_json"], strict=True):
            if place >= 0:
                column[place] = known[text]
    # Integers and floats get their own dtype if every value has that type.
    series = pd.Series(column, index=index, dtype=object)
    return series.infer_objects() if spec.value_type in _CASTS else series


def _value(text: str, spec: AttributeSpec) -> Any:
    value = json.loads(text)
    cast = _CASTS.get(spec.value_type)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if cast is int and is_number and value % 1:
        return value
    return cast(value) if cast and is_number else value
