"""Declared charts of single bars: the largest names, and a bar for each rank or stream."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt
import pandas as pd

from hta_sql.charts.declared.rows import Declared, heading
from hta_sql.charts.drawing.bars import Parts
from hta_sql.charts.drawing.names import numbered
from hta_sql.charts.drawing.palette import named_color, named_parts
from hta_sql.charts.drawing.style import (
    MANY,
    OWN_COLORS,
    bars,
    bars_by_name,
    colors,
    headed,
    labels,
    lane_names,
    lanes,
    nothing,
    present,
    subtitled,
    zoom,
)
from hta_sql.charts.drawing.units import scaled
from hta_sql.library.declared import Column

TOP = 15
"""Default of the maximum number of bars in a panel."""

TICKS = 10
"""Maximum count with a tick for each whole number."""


def by_name(of: Declared, *, top: int | None = None) -> alt.TopLevelMixin:
    """Draw the largest names, in a panel for each group of columns or for each part.

    Ranks are summed.

    Args:
        of: The declared chart.
        top: Maximum number of bars in a panel; default: what the chart declares.
    """
    name = of.text("name")
    rows = of.table
    if "unnamed" in of.chart:
        rows = rows.assign(**{name: rows[name].astype(object).fillna(of.text("unnamed"))})
    rows = rows[rows[name].notna()]
    most = top or of.chart.get("top", TOP)
    drawn: list[alt.Chart] = []
    for title, value, split, parts in _panels(of, rows.assign(lane=lane_names(rows, name))):
        largest = _largest(of, split, parts, most)
        if len(largest):
            panel = _panel(of, largest, of.unit_of(value), parts)
            panel = panel.add_params(zoom(f"bars_{len(drawn)}"))
            drawn.append(panel.properties(title=subtitled(title)) if title else panel)
    if not drawn:
        return nothing(of.title, of.sentence)
    return alt.vconcat(*drawn, title=headed(of.title, *of.notes), resolve=OWN_COLORS)


_Split = tuple[str, str, pd.DataFrame, Parts]
"""Title of a panel, a column with the unit of its amounts, its rows with part and amount, parts."""


def _panels(of: Declared, rows: pd.DataFrame) -> Iterator[_Split]:
    """Yield the panels; a row has a part, and an amount in the unit of a column."""
    chart = of.chart
    if "part" in chart:
        split = rows.assign(part=of.labels(rows), amount=rows[of.text("value")])
        shown = dict.fromkeys(label for label, _ in of.parts.values())
        for title in shown if chart.get("separate") else [""]:
            own = split[split["part"] == title] if title else split
            yield title, of.text("value"), own, of.parts
        return
    one = chart.get("parts") or {of.text("value"): ["", of.color]}
    for title, declared in chart.get("panels", {"": one}).items():
        parts = named_parts(declared)
        split = pd.concat(
            rows.assign(part=label, amount=rows[column]) for column, (label, _) in parts.items()
        )
        yield title, next(iter(parts)), split, parts


def _largest(of: Declared, rows: pd.DataFrame, parts: Parts, top: int) -> pd.DataFrame:
    """Return the largest bars, summed over ranks; names with different texts are different bars."""
    keys = ["lane", *of.texts]
    numbers = [name for name in of.chart.get("tooltip", ()) if name not in keys]
    grouped = rows.groupby([*keys, "part"], as_index=False, dropna=False)
    sums = grouped[["amount", *numbers]].sum(min_count=1)
    sums = sums[sums["amount"] > 0]
    by_bar = sums.groupby(keys, dropna=False)
    places = {label: place for place, (label, _) in enumerate(parts.values())}
    sums = sums.assign(
        bar=by_bar.ngroup(),
        whole=by_bar["amount"].transform("sum"),
        share=sums["amount"] / sums["amount"].sum(),
        place=sums["part"].map(places),
    )
    sums = sums.sort_values(["whole", "bar", "place"], ascending=[False, True, True])
    sums = sums[sums["bar"].isin(sums["bar"].drop_duplicates()[:top])]
    lanes = sums.drop_duplicates("bar").set_index("bar")["lane"]
    short = dict(zip(lanes.index, labels(numbered(list(lanes))), strict=True))
    return sums.assign(short=sums["bar"].map(short))


def _panel(of: Declared, rows: pd.DataFrame, column: Column, parts: Parts) -> alt.Chart:
    shown, tips = of.tooltip(rows)
    amounts, unit, form = scaled(rows["amount"], column, float(rows["whole"].max()))
    measure = f"{of.text('measure')}{unit}"
    tooltip = {"lane": heading(of.text("name")), f"amount:{form}": measure, "share:.1%": "Share"}
    palette = present(dict(parts.values()), rows["part"])
    by_color = len(palette) > 1 or ("part" in of.chart and not of.chart.get("separate"))
    if by_color:
        tooltip |= {"part": of.text("legend", "Part")}
    legend = alt.Legend(orient="bottom") if by_color else None
    return bars_by_name(
        shown.assign(amount=amounts),
        alt.X("amount:Q", title=measure),
        tooltip | tips,
        colors(palette, of.chart.get("legend"), legend=legend),
        order=alt.Order("place:Q"),
    ).properties(height=alt.Step(20))


def of_ranks(of: Declared) -> alt.TopLevelMixin:
    """Draw a bar for each rank or stream; of many, the highest ones."""
    value, rows = of.text("value"), _means(of)
    if not (rows[of.text("known", value)].notna().any() and rows[value].fillna(0).any()):
        return nothing(of.title, of.sentence)
    highest = rows.sort_values(value, ascending=False, kind="stable", na_position="last").index
    kept = rows.loc[sorted(highest[:MANY])]
    amounts, unit, form = scaled(kept[value], of.columns[value])
    kept, tips = of.tooltip(kept.assign(lane=lane_names(kept, *of.bar), amount=amounts))
    title, measure = " / ".join(map(heading, of.bar)), f"{of.text('measure')}{unit}"
    tooltip = {"lane": title, f"amount:{form}": measure}
    color: str | alt.Color = of.color
    if "part" in of.chart:
        kept = kept.assign(part=of.labels(kept))
        tooltip |= {"part": of.text("legend", "Part")}
        color = colors(present(dict(of.parts.values()), kept["part"]), None)
    elif "above" in of.chart:
        above, upto = (f"{words} {of.chart['above']:g}" for words in ("above", "up to"))
        is_above = rows.loc[kept.index, value] > of.chart["above"]
        kept = kept.assign(part=is_above.map({True: above, False: upto}))
        color = colors({above: named_color("outlier"), upto: named_color("normal")}, None)
    x, width = lanes(kept, title=title)
    y = alt.Y("amount:Q", title=measure, axis=_axis(of.columns[value], amounts))
    notes = of.notes
    if len(kept) < len(rows):
        notes.append(f"The {len(kept)} highest of {len(rows):,}.")
    drawn = bars(kept, tooltip | tips, color, x=x, y=y)
    return drawn.properties(title=headed(of.title, *notes), width=width)


def _means(of: Declared) -> pd.DataFrame:
    """Return a row for each bar, with the means of its numbers."""
    keys = ["run", *of.bar]
    used = [of.text(key) for key in ("value", "known", "part") if key in of.chart]
    numbers = [*of.table.select_dtypes("number")]
    names = dict.fromkeys([*used, *of.chart.get("tooltip", ())])
    how = {name: "mean" if name in numbers else "first" for name in names if name not in keys}
    return of.table.groupby(keys, as_index=False, dropna=False).agg(how)


def _axis(column: Column, values: pd.Series[float]) -> alt.Axis:
    """Return the axis of a column; counts have no two ticks with the same label."""
    if column.unit == "%":
        return alt.Axis(format="%")
    if column.unit != "count":
        return alt.Axis()
    most = int(values.fillna(0).max())
    if most <= TICKS:
        return alt.Axis(values=list(range(most + 1)), format="d")
    return alt.Axis(tickMinStep=1, format="d")
