"""The rows of a declared chart, with its parts, bars and tooltips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from hta_sql.charts.drawing.palette import named_color, named_parts
from hta_sql.charts.drawing.units import scaled
from hta_sql.library.chart_header import Declaration, chart_of
from hta_sql.library.declared import Column
from hta_sql.library.objects import SqlObject

UNKNOWN = "unknown"
"""Part of the rows without a value in the column ``part``."""


@dataclass(frozen=True)
class Declared:
    """A declared chart with the rows to draw.

    Attributes:
        chart: The declaration.
        table: Rows of the analysis, without those that ``where`` excludes.
        columns: Documented columns of the analysis, by name.
    """

    chart: Declaration
    table: pd.DataFrame
    columns: Mapping[str, Column]

    def text(self, key: str, default: str = "") -> str:
        """Return the text of a key: a column, a title or a sentence."""
        return str(self.chart.get(key, default))

    @property
    def title(self) -> str:
        """Title of the chart."""
        return self.text("title")

    @property
    def color(self) -> str:
        """Color of marks that are not parts."""
        return named_color(self.text("color", "neutral"))

    @property
    def notes(self) -> list[str]:
        """How to read the chart, one line each."""
        return list(self.chart.get("notes", ()))

    @property
    def sentence(self) -> str:
        """Sentence to draw if there is nothing else to draw, with the reasons in the rows."""
        empty = self.text("empty", "Nothing to show.")
        if "reason" not in self.chart:
            return empty
        reasons = self.table[self.text("reason")].dropna().unique()
        return f"{empty.rstrip('.')}: {'; '.join(reasons)}." if len(reasons) else empty

    @cached_property
    def parts(self) -> dict[str, tuple[str, str]]:
        """Part ─▶ label and color; a part is a column, or a value of the column ``part``."""
        found = self._part_names(self.table).unique() if "part" in self.chart else ()
        return named_parts(self.chart.get("parts", {}), found)

    def labels(self, rows: pd.DataFrame) -> pd.Series[str]:
        """Return the label of each row's part, if the values of a column are the parts."""
        return self._part_names(rows).map(lambda name: self.parts[name][0])

    def _part_names(self, rows: pd.DataFrame) -> pd.Series[str]:
        names = rows[self.text("part")].map(_name, na_action="ignore")
        return names.astype(object).where(names.notna(), UNKNOWN)

    @cached_property
    def bar(self) -> list[str]:
        """Columns that identify a bar; the device only if a rank has several devices."""
        names = [self._known(name) for name in self.chart.get("bar", ["rank"])]
        if names[1:] and "device" in names:
            devices = self.table.groupby(["run", names[0]])["device"].nunique()
            if not (devices > 1).any():
                names.remove("device")
        return names

    def _known(self, name: str) -> str:
        """Return the first of several columns if it is known in every row."""
        first = name.partition(" or ")[0]
        return first if self.table[first].notna().all() else name

    def unit_of(self, name: str) -> Column:
        """Return the documented column of a value, such as ``recorded_gbps or computed_gbps``."""
        return self.columns[name.partition(" or ")[0]]

    def tooltip(self, rows: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
        """Return rows with the tooltip's columns in readable units, and the tooltip."""
        tips = {}
        for name, label in self.chart.get("tooltip", {}).items():
            if name in self.texts:
                tips[name] = label
                continue
            values, unit, form = scaled(rows[name], self.columns[name])
            rows = rows.assign(**{name: values})
            tips[f"{name}:{form}"] = f"{label}{unit}"
        return rows, tips

    @property
    def texts(self) -> list[str]:
        """Columns of the tooltip that are no numbers."""
        names = self.chart.get("tooltip", ())
        return [name for name in names if self.columns[name].type in ("VARCHAR", "BOOLEAN")]


def declared_rows(about: SqlObject, table: pd.DataFrame) -> Declared:
    """Return the declared chart of an analysis with the rows that it draws."""
    chart = chart_of(about)
    for name, value in chart.get("where", {}).items():
        table = table[table[name] == value]
    for name in (*chart.get("bar", ()), chart.get("name"), chart.get("value")):
        if name is None or name in table:
            continue
        first, *others = name.split(" or ")
        known = table[first].astype(object)
        for other in others:
            known = known.where(known.notna(), table[other])
        table = table.assign(**{name: known.infer_objects()})
    return Declared(chart, table, {column.name: column for column in about.columns})


def heading(name: str) -> str:
    """Return the title of a column, such as "Stage" for ``stage``."""
    return name.partition(" or ")[0].replace("_", " ").capitalize()


def _name(value: Any) -> str:
    # A column of whole numbers with missing values has dtype float.
    return f"{value:.0f}" if isinstance(value, float) else str(value)
