"""Add the rows of the analysis ``event_arguments`` to HTA's trace frame as additional columns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from hta_sql.hta.configs.default_values import AttributeSpec, ValueType
from hta_sql.hta.configs.parser_config import ParserConfig

_CASTS: dict[ValueType, type] = {ValueType.Int: int, ValueType.Float: float}


def wanted_arguments(config: ParserConfig, frame: pd.DataFrame) -> list[AttributeSpec]:
    """Return the arguments of a configuration that are not yet columns of a frame."""
    return [spec for spec in config.get_args() if spec.name not in frame]


def add_arguments(
    frame: pd.DataFrame, table: pa.Table, specs: Iterable[AttributeSpec] | None
) -> None:
    """Add a column for each argument, in place.

    Args:
        frame: Frame of a rank, indexed by event.
        table: Rows of the analysis ``event_arguments`` for the rank.
        specs: Arguments and their columns. None adds every argument of the table that has no column
            yet, named by :meth:`ParserConfig.transform_arg_name`. If two arguments have the same
            column name, the second gets the suffix ``_2``.
    """
    rows = table.select(["event_id", "argument", "value_json"]).to_pandas()
    values = {str(name): group for name, group in rows.groupby("argument")}
    for spec in _specs_of(values) if specs is None else specs:
        if spec.name not in frame:
            frame[spec.name] = _column(frame.index, values.get(spec.raw_name), spec)


def _specs_of(values: dict[str, pd.DataFrame]) -> Iterator[AttributeSpec]:
    """Yield a specification for each argument that occurs, with a unique column name."""
    known = {spec.raw_name: spec for spec in ParserConfig.get_all_available_args().values()}
    taken: Counter[str] = Counter()
    for name, group in sorted(values.items()):
        spec = known.get(name) or ParserConfig.make_attribute_spec(name, _first(group))
        taken[spec.name] += 1
        count = taken[spec.name]
        yield spec if count == 1 else spec._replace(name=f"{spec.name}_{count}")


def _first(group: pd.DataFrame) -> object:
    value: object = json.loads(group["value_json"].iloc[0])
    return value


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
