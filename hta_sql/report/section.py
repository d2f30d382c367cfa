"""Renders one analysis on the page: title, chart, rows, and SQL."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from altair.utils.schemapi import debug_mode
from markupsafe import Markup

from hta_sql.charts.export import spec_of
from hta_sql.charts.page import chart_markup
from hta_sql.errors import HtaSqlError
from hta_sql.library.objects import SqlObject
from hta_sql.report.answers import Answer
from hta_sql.report.contents import Section
from hta_sql.report.headings import column_texts
from hta_sql.report.reasons import shortly
from hta_sql.report.rendering import missing, render
from hta_sql.report.sql_calls import sql_markup
from hta_sql.report.tables import table_markup
from hta_sql.results.result import Result
from hta_sql.text import counted, cut_middle

log = logging.getLogger(__name__)

CHART_BYTES = 1_000_000
"""Maximum size of a chart on the page [bytes], so that the page opens in seconds."""

PAPER = 1
"""Number of printed sections per topic; must match the style sheet and script of the page."""

DESCRIBED_ROWS = 4
DESCRIBED_COLUMNS = 6
"""Number of columns in the text alternative of a chart, for readers who cannot see it."""


_ENOUGH = 2
"""Minimum number of steps for the last one to be excluded, because profilers stop during it."""


@dataclass(frozen=True)
class Rendered:
    """A section as markup, and the reason why it has nothing to show or why it failed."""

    section: Section
    markup: Markup
    reason: str = ""
    is_failed: bool = False


def rendered(answer: Answer, health: Sequence[Mapping[str, Any]], rows: int) -> Rendered:
    """Render a section.

    Args:
        answer: Rows of the section, or the reason why there are none.
        health: Rows of ``rank_health``, which count the steps.
        rows: Maximum rows of the section's table.
    """
    section, result = answer.section, answer.result
    if answer.is_failed:
        sql = sql_markup(section.analysis, answer.values)
        markup = render("failed", section=section, reason=answer.reason, sql=sql)
        return Rendered(section, markup, answer.reason, is_failed=True)
    if result is None:
        return Rendered(section, Markup(), answer.reason)
    spec = _spec(result) if section.has_chart else ""
    if not isinstance(spec, str) and (sentence := _one_point(spec)) is not None:
        if sentence:
            return Rendered(section, Markup(), sentence)
        spec = ""
    notes = _notes_of(spec)
    notes = notes + "." * (notes[-1:] not in {".", ""})
    scope = scope_of(section.analysis, answer.values, health)
    if len(json.dumps(spec)) > CHART_BYTES:
        spec = "The chart is too large for a page; the table and the SQL have its numbers."
    markup = render(
        "section",
        section=section,
        notes=" ".join(filter(None, (notes, scope))),
        chart=_chart(result, spec, f"chart-{section.name}"),
        is_drawn=isinstance(spec, dict),
        table=table_markup(result, rows) if section.has_table else "",
        size=counted(len(result), "row"),
        sql=sql_markup(section.analysis, answer.values),
    )
    return Rendered(section, markup)


def _notes_of(spec: dict[str, Any] | str) -> str:
    """Remove a chart's title, which the page shows as heading; return the chart's notes as text."""
    title = spec.pop("title", None) if isinstance(spec, dict) else None
    lines = title.get("subtitle", ()) if isinstance(title, dict) else ()
    return " ".join([lines] if isinstance(lines, str) else lines)


def not_shown(left: Sequence[Rendered]) -> Markup:
    """Render the list of sections without content, grouped by reason."""
    groups: dict[str, list[Section]] = {}
    for one in left:
        groups.setdefault(one.reason, []).append(one.section)
    shown = [(shortly(reason), sections) for reason, sections in sorted(groups.items())]
    return render("not_shown", groups=shown)


def _spec(result: Result) -> dict[str, Any] | str:
    """Return the chart of a result, or the reason why it could not be drawn."""
    try:
        # The tests validate every figure against the schema; validating here takes a third of the
        # time.
        with debug_mode(False):
            return spec_of(result.chart())
    except Exception as error:  # a failing chart must not affect the rest of the page
        if not isinstance(error, HtaSqlError):
            log.exception("A chart could not be drawn.")
        return f"The chart could not be drawn: {error}"


def _chart(result: Result, spec: dict[str, Any] | str, key: str) -> Markup:
    """Render a chart, or the reason why there is none."""
    if isinstance(spec, dict):
        return chart_markup(key, spec, _in_words(result))
    return missing(spec) if spec else Markup()


def _one_point(spec: dict[str, Any]) -> str | None:
    """Return the text (possibly empty) that a chart with one point shows; None for other charts."""
    sets = list(spec["datasets"].values())
    # A folded row is a bar with several parts.
    if any(len(rows) > 1 for rows in sets) or '"fold"' in json.dumps(spec):
        return None
    return " ".join(row["text"] for rows in sets for row in rows if "text" in row)


def _in_words(result: Result) -> str:
    """Return the text alternative of a chart: the values of its first rows."""
    table = result.arrow().slice(0, DESCRIBED_ROWS)
    fields = list(zip(table.schema, table.columns, strict=True))[:DESCRIBED_COLUMNS]
    texts = [
        (words, cells)
        for field, values in fields
        for words, cells in [column_texts(field.name, values.to_pylist(), result.analysis)]
    ]
    rows = (
        ", ".join(f"{words}: {cut_middle(cells[row], 60)}" for words, cells in texts)
        for row in range(table.num_rows)
    )
    summary = result.analysis.summary if result.analysis else ""
    return f"{summary} First of {counted(len(result), 'row')}: {'; '.join(rows)}."


def scope_of(
    analysis: SqlObject, values: Mapping[str, Any], health: Sequence[Mapping[str, Any]]
) -> str:
    """Describe whether an analysis covers steps (and the last one) or the whole capture.

    Args:
        analysis: The analysis.
        values: Parameters of the analysis.
        health: Rows of ``rank_health``, which count the steps.
    """
    about = {parameter.name: parameter.doc for parameter in analysis.parameters}
    most = max((row["step_count"] or 0 for row in health), default=0)
    if "steps" not in about or values.get("steps") or not most:
        return ""
    leaves_out = most >= _ENOUGH and "include_last_profiler_step" in about
    leaves_out &= "including the last one" not in about["steps"]
    if "outside steps" in about["steps"]:
        return f"Covers the whole capture{' except its last step' * leaves_out}."
    return f"Covers all steps{' except the last' * leaves_out}."
