"""Compute what the explorer shows: results in a scope, their charts, and selected rows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts import draw, figure_of
from hta_sql.errors import HtaSqlError
from hta_sql.library.objects import SqlObject
from hta_sql.library.parameters import taken_by
from hta_sql.library.sql_files import query_sql
from hta_sql.report.contents import TOPICS, Section
from hta_sql.report.contents import topics as contents
from hta_sql.report.first_screen import QUESTIONS, RECORDED_QUESTIONS
from hta_sql.report.reasons import nothing_known
from hta_sql.results.cells import cell_text, column_unit
from hta_sql.results.result import Result
from hta_sql.results.without_device import without_device
from hta_sql.store.query.trace_store import TraceStore

STORE = "HTA_SQL_EXPLORER_STORE"
MEMORY_LIMIT = "HTA_SQL_EXPLORER_MEMORY_LIMIT"
"""Environment variables of the page's process: store to open, and its memory limit."""

QUESTIONS_TOPIC = "Questions"
"""Topic with which the page opens."""

CHOSEN = "chosen"
"""Name of a chart's selection."""

LANE = "lane"
"""Column of a chart's data that labels its bars with result columns: ``3 / 7``."""

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
"""Columns by which a mark of a chart can be selected, if the chart has them."""

ROWS = 10_000
"""Maximum rows of a user's query: all of them are sent to the browser."""


def opened(environment: Mapping[str, str]) -> TraceStore:
    """Open the store named in the environment, in read-only safe mode.

    Raises:
        StoreNotFoundError: The path has no store.
    """
    limit = environment.get(MEMORY_LIMIT)
    return TraceStore(environment[STORE], safe=True, memory_limit=limit)


def topics(store: TraceStore) -> dict[str, dict[str, str]]:
    """Return what can be chosen: the questions of a report's first screen, then all analyses by topic.

    Analyses are in report order; those that have no section in a report follow.

    Returns:
        Topic ─▶ label (a question, or title and name) ─▶ name of the analysis.
    """
    sections = _sections(store)
    found: dict[str, list[SqlObject]] = {}
    for analysis in store.library.newest():
        found.setdefault(analysis.topic, []).append(analysis)

    def in_report(analysis: SqlObject) -> tuple[float, bool, str]:
        section = sections.get(analysis.base_name)
        position = section.position if section else math.inf
        return position, figure_of(analysis) is None, analysis.base_name

    order = [*(key for key in TOPICS if key in found), *sorted(set(found) - set(TOPICS))]
    by_topic = {
        TOPICS.get(key, key.capitalize()): {
            f"{a.title} ({a.base_name})": a.base_name for a in sorted(found[key], key=in_report)
        }
        for key in order
    }
    return {QUESTIONS_TOPIC: QUESTIONS | RECORDED_QUESTIONS, **by_topic}


def opening(store: TraceStore, run: str, names: Mapping[str, str]) -> str:
    """Return the label of the first analysis that has an answer for a run, or the first of all."""
    answered = (
        label for label, name in names.items() if isinstance(answer(store, name, run), Result)
    )
    return next(answered, next(iter(names)))


def _sections(store: TraceStore) -> dict[str, Section]:
    return {
        section.name: section for topic in contents(store.library) for section in topic.sections
    }


def example() -> str:
    """Return the query that the editor starts with."""
    return query_sql("explorer")


def steps_of(store: TraceStore, run: str) -> list[int]:
    """Return the profiler steps of a run, sorted."""
    rows = store.run("profiler_steps", runs=[run]).records()
    return sorted({row["step"] for row in rows})


def answer(
    store: TraceStore, name: str, run: str, ranks: Sequence[int] = (), steps: Sequence[int] = ()
) -> Result | str:
    """Run an analysis with those scope parameters that it accepts.

    Returns:
        The result, or a sentence that explains why it has no rows, or none with known values.
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
            section = _sections(store).get(name)
            return (nothing_known(section, result) if section else "") or result
    except HtaSqlError as error:
        return str(error)
    if why := without_device(store.run, analysis, {"runs": [run]}):
        return why
    needs = analysis.facts.get("Needs", "data that the traces do not contain")
    return f"No rows. {name} needs: {needs}."


def asked(store: TraceStore, query: str) -> Result | str:
    """Run a SQL query; return the first 10,000 rows, or the error message."""
    try:
        result = store.sql(query, most_rows=ROWS)
        len(result)
    except HtaSqlError as error:
        return str(error)
    return result


def chart_of(result: Result) -> alt.TopLevelMixin | None:
    """Draw a result with clickable marks; None if the analysis has no figure."""
    if result.analysis is None or figure_of(result.analysis) is None:
        return None
    try:
        spec = json.loads(draw(result).to_json())
    except HtaSqlError:
        return None
    _let_choose(spec, result.columns)
    chart: alt.TopLevelMixin = alt.Chart.from_dict(spec)
    return chart


def _let_choose(spec: dict[str, Any], columns: Sequence[str]) -> None:
    """Make marks selectable by columns they share with the rows, in the first view that has any."""
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
    """Return the rows that are selected in the chart.

    Args:
        frame: The rows.
        selections: Name of a selection ─▶ column ─▶ selected values, in marimo's format.
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
    """Return a mask of the rows of a lane, whose label joins key column values in order."""
    keep = pd.Series(data=True, index=frame.index)
    left = [column for column in KEYS if column in frame.columns]
    for part in lane.split(" / "):
        matching = (column for column in left if (frame[column][keep].astype(str) == part).any())
        column = next(matching, None)
        if column is not None:
            keep &= frame[column].astype(str) == part
            left = left[left.index(column) + 1 :]
    return keep


def formats(result: Result) -> dict[str, Callable[[Any], str]]:
    """Return a formatter with human-readable units for each column that has a unit."""

    def writer(unit: str | None) -> Callable[[Any], str]:
        # pandas uses NaN for an unknown number.
        return lambda value: cell_text(None if value is None or value != value else value, unit)  # noqa: PLR0124 - NaN

    units = {name: column_unit(name, result.analysis) for name in result.columns}
    return {name: writer(unit) for name, unit in units.items() if unit}


def rows_of(result: Result) -> pd.DataFrame:
    """Return the rows of a result; columns that its analysis shows on a narrow terminal come first."""
    shown = result.analysis.shown if result.analysis else []
    first = [name for name in shown if name in result.columns]
    frame = result.df()
    return frame[[*first, *(name for name in result.columns if name not in first)]]


def explained(analysis: SqlObject) -> str:
    """Return the definitions of an analysis and the meaning of its columns, as Markdown."""
    return f"{analysis.full_description}\n\n{_columns(analysis)}"


def schema(store: TraceStore) -> dict[str, str]:
    """Return the tables with their columns, as Markdown."""
    return {
        table.name: f"{table.summary}\n\n{_columns(table)}"
        for table in sorted(store.library.tables, key=lambda table: table.name)
    }


def _columns(about: SqlObject) -> str:
    return "\n".join(
        f"- `{column.name}` {column.type}{f' [{column.unit}]' if column.unit else ''}: {column.doc}"
        for column in about.columns
    )
