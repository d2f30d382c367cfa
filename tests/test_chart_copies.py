"""Tests that figures share encodings while they are built, but equal altair's once finished."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.style import data
from hta_sql.charts.export import spec_of
from hta_sql.charts.shown import themed

ROWS = pd.DataFrame({"x": [1, 2], "name": ["a", None]})


def _layers(kind: type[alt.Chart]) -> Any:
    base = kind(data(ROWS), mark="bar").encode(
        x="x:Q", x2="high:Q", tooltip=[alt.Tooltip("name:N")]
    )
    words = base.encode(
        text="name:N",
        y=alt.value(14),
        color=alt.condition("datum.x > 1", alt.value("white"), alt.value("black")),
    )
    return alt.layer(base.properties(width=200, height=alt.Step(20)), words, title="Bars")


def test_a_figure_is_what_altair_draws() -> None:
    """A figure equals altair's, whether its channels are strings, constants or conditions."""
    assert spec_of(_layers(Chart)) == spec_of(_layers(alt.Chart))


def test_copies_share_encodings_while_a_figure_is_built() -> None:
    """A copy shares the encoding but has its own lists, because altair appends to lists."""
    chart: Any = (
        Chart(data(ROWS), mark="bar").encode(x="x:Q").transform_calculate(high="datum.x + 1")
    )
    copy = chart.copy()
    assert copy.encoding is chart.encoding
    assert copy.transform is not chart.transform


def test_copies_of_a_finished_figure_share_nothing() -> None:
    """A change to a copy of a finished figure does not change the figure."""
    figure: Any = themed(_layers(Chart))
    before = spec_of(figure)
    copy = figure.copy()
    copy.layer[0].encoding.x.title = "changed"
    assert spec_of(copy) != before
    assert spec_of(figure) == before
    assert not any(isinstance(part, Chart) for part in figure.layer)
