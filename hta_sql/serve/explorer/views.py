"""What the explorer shows: answers within a scope, their charts, the rows that a selection leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts import FIGURES, draw
from hta_sql.errors import HtaSqlError
from hta_sql.library.objects import SqlObject
from hta_sql.library.parameters import taken_by
from hta_sql.report.contents import TOPICS
from hta_sql.results.cells import cell_text, column_unit
from hta_sql.results.result import Result
from hta_sql.store.query.trace_store import TraceStore

STORE = "HTA_SQL_EXPLORER_STORE"
MEMORY_LIMIT = "HTA_SQL_EXPLORER_MEMORY_LIMIT"
"""Variables that tell the process of the page what to open, and how much memory it may take."""

CHOSEN = "chosen"
"""The selection of a chart."""

LANE = "lane"
"""The column of a chart's data that names its bars by the columns of the result: ``3 / 7``."""

KEYS = (
    "run",
    "rank",
    "step",
    "stream",
    "device",
    "operator",
    "module",
    "name",
    "category",
    "class",
)
"""Columns by which a mark of a chart is chosen, as far as it has them."""

ROWS = 10_000
"""Rows of a question of one's own, at most: all of them go to the browser."""


def opened(environment: Mapping[str, str]) -> TraceStore:
    """Open the store that the environment names; it can be read and nothing else.

    Raises:
        StoreNotFoundError: There is no store at that path.
    """
    limit = environment.get(MEMORY_LIMIT)
    return TraceStore(environment[STORE], safe=True, memory_limit=limit)


def topics(store: TraceStore) -> dict[str, dict[str, str]]:
    """List the analyses by topic, in the order of the report; those with a chart come first.

    Returns:
        Topic ─▶ title and name of an analysis ─▶ its name.
    """
    found: dict[str, list[SqlObject]] = {}
    for analysis in store.library.newest():
        found.setdefault(analysis.topic, []).append(analysis)
    order = [*(key for key in TOPICS if key in found), *sorted(set(found) - set(TOPICS))]
    return {
        TOPICS.get(key, key.capitalize()): {
            f"{a.title} ({a.base_name})": a.base_name
            for a in sorted(found[key], key=lambda a: (a.base_name not in FIGURES, a.base_name))
        }
        for key in order
    }


def steps_of(store: TraceStore, run: str) -> list[int]:
    """List the profiler steps of a run."""
    rows = store.run("profiler_steps", runs=[run]).records()
    return sorted({row["step"] for row in rows})


def answer(
    store: TraceStore, name: str, run: str, ranks: Sequence[int], steps: Sequence[int]
) -> Result | str:
    """Ask an analysis within a scope, as far as it has one.

    Returns:
        Its rows, or in a sentence why there are none.
    """
    wanted: dict[str, Any] = {
        "runs": [run],
        "ranks": list(ranks) or None,
        "steps": list(steps) or None,
    }
    analysis = store.describe(name)
    given = {key: value for key, value in wanted.items() if value}
    try:
        result = store.run(name, **taken_by(analysis, given))
        if len(result):
            return result
    except HtaSqlError as error:
        return str(error)
    needs = analysis.facts.get("Needs", "something that the traces do not have")
    return f"No rows. {name} needs: {needs}."


def asked(store: TraceStore, query: str) -> Result | str:
    """Ask a question in SQL; returns the first 10,000 rows, or what is wrong with it."""
    try:
        result = store.sql(query, most_rows=ROWS)
        len(result)
    except HtaSqlError as error:
        return str(error)
    return result


def chart_of(result: Result) -> alt.TopLevelMixin | None:
    """Draw a result, its marks to be chosen by a click; None where there is no figure of it."""
    if result.analysis is None or result.analysis.base_name not in FIGURES:
        return None
    try:
        spec = json.loads(draw(result).to_json())
    except HtaSqlError:
        return None
    _let_choose(spec, result.columns)
    chart: alt.TopLevelMixin = alt.Chart.from_dict(spec)
    return chart


def _let_choose(spec: dict[str, Any], columns: Sequence[str]) -> None:
    """Let a click choose by what a mark and the rows have in common, in the first view that can."""
    datasets = spec.get("datasets", {})
    for view, data in _views(spec, ""):
        row: dict[str, Any] = next(iter(datasets.get(data, ())), {})
        same = [key for key in KEYS if key in row and key in columns]
        if fields := [*same, *([LANE] if LANE in row else [])]:
            select = {"type": "point", "fields": fields}
            view["params"] = [*view.get("params", ()), {"name": CHOSEN, "select": select}]
            return


def _views(spec: dict[str, Any], data: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each view that has marks, with the name of its data."""
    data = (spec.get("data") or {}).get("name", data)
    if "mark" in spec:
        yield spec, data
    for inner in _inner(spec):
        yield from _views(inner, data)


def _inner(spec: dict[str, Any]) -> list[dict[str, Any]]:
    lists = [
        view for key in ("layer", "hconcat", "vconcat", "concat") for view in spec.get(key, ())
    ]
    return [*lists, *([spec["spec"]] if "spec" in spec else [])]


def selected(frame: pd.DataFrame, selections: Mapping[str, Any]) -> pd.DataFrame:
    """Keep the rows that were chosen in the chart.

    Args:
        frame: The rows.
        selections: Name of a selection ─▶ column ─▶ its values, as marimo gives them.
    """
    chosen = selections.get(CHOSEN)
    for column, values in chosen.items() if isinstance(chosen, Mapping) else ():
        if not isinstance(values, list) or not values:
            continue
        if column in frame.columns:
            frame = frame[frame[column].isin(values)]
        elif column == LANE:
            parts = [_of_lane(frame, str(value)) for value in values]
            frame = frame[pd.concat(parts, axis=1).any(axis=1)]
    return frame


def _of_lane(frame: pd.DataFrame, lane: str) -> pd.Series[bool]:
    """Tell the rows of a lane: it names the columns that tell lanes apart, in their order."""
    keep = pd.Series(data=True, index=frame.index)
    left = [column for column in KEYS if column in frame.columns]
    for part in lane.split(" / "):
        told = (column for column in left if (frame[column][keep].astype(str) == part).any())
        column = next(told, None)
        if column is not None:
            keep &= frame[column].astype(str) == part
            left = left[left.index(column) + 1 :]
    return keep


def formats(result: Result) -> dict[str, Callable[[Any], str]]:
    """Say how the cells of each column are written: in human units."""

    def writer(unit: str | None) -> Callable[[Any], str]:
        # pandas has NaN where a number is unknown.
        return lambda value: cell_text(None if value is None or value != value else value, unit)  # noqa: PLR0124 - NaN

    units = {name: column_unit(name, result.analysis) for name in result.columns}
    return {name: writer(unit) for name, unit in units.items() if unit}


def schema(store: TraceStore) -> dict[str, str]:
    """List the tables with their columns, as Markdown."""
    return {
        table.name: f"{table.summary}\n\n"
        + "\n".join(
            f"- `{column.name}` {column.type}{f' [{column.unit}]' if column.unit else ''}: {column.doc}"
            for column in table.columns
        )
        for table in sorted(store.library.tables, key=lambda table: table.name)
    }
