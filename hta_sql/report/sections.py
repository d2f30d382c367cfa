"""One analysis on the page: what it answers, its chart, its rows, and the SQL that made them."""

from __future__ import annotations

import html
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from altair.utils.schemapi import debug_mode

from hta_sql.charts.export import spec_of
from hta_sql.charts.page import chart_place
from hta_sql.errors import HtaSqlError
from hta_sql.library import sqltext
from hta_sql.library.objects import SqlObject, load_library
from hta_sql.report.contents import Section
from hta_sql.report.headings import column_texts, column_words, sentence
from hta_sql.report.scope import scope_of
from hta_sql.report.tables import table_markup
from hta_sql.results.result import Result
from hta_sql.store.query.trace_store import TraceStore
from hta_sql.text import counted, cut_middle

Answers = Mapping[str, Result]
"""Name of an analysis ─▶ its result in the scope of the report."""

log = logging.getLogger(__name__)

CHART_BYTES = 1_000_000
"""A larger chart is not put on the page: the page must open in seconds."""


PAPER = 1
"""So many sections of a topic are printed; the style sheet and the script of the page say so, too."""

TOLD_ROWS = 4
TOLD_COLUMNS = 6
"""So much of a result stands in the words for those who cannot see its chart."""

_NOTHING = "Nothing to show for these traces. "
_COUNTS = {
    "GPU activity": "gpu_op_count",
    "runtime calls": "linked_pct",
    "operators": "cpu_op_count",
    "host operators": "cpu_op_count",
    "memory events (profile_memory=True)": "memory_event_count",
}
"""What an analysis may need ─▶ the column of ``rank_health`` that says whether it is there."""

_DEFAULT = re.compile(r"\b([a-z]+(?:_[a-z]+)+)((?: [\w ]+)?) \(([^()]+) by default\)")
"""A parameter where it stands in what an analysis needs, what it counts, and its default."""

_NAMED = re.compile(
    r"\b(?P<before>look at )?(?P<name>(?(before)\w+|(?:[a-z0-9]+(?:_[a-z0-9]+)+|stragglers)))\b"
)
"""Where a message may name an analysis: a word of several parts, or any after "look at"."""

FIRST_SCREEN = (
    *("jobs", "rank_health", "kpis", "step_accounting", "stragglers", "advice", "top_costs"),
    "findings",
)


def first_answers(store: TraceStore, scope: Mapping[str, Any]) -> Answers:
    """Ask what the first screen is made of; sections below it show some of these once more."""
    asked = (load_library().find(name) for name in FIRST_SCREEN)
    return {a.base_name: store.run(a.base_name, **parameters_of(a, scope)) for a in asked}


@dataclass(frozen=True)
class Written:
    """A section as it is written: with something to show, or why there is nothing."""

    section: Section
    markup: str
    reason: str = ""


def written(
    store: TraceStore, section: Section, scope: Mapping[str, Any], rows: int, answers: Answers
) -> Written:
    """Write one section, or say why it has nothing to show."""
    analysis = section.analysis
    values = parameters_of(analysis, {**section.parameters, **scope})
    if reason := _not_asked(store, section, values):
        return Written(section, "", reason)
    try:
        result = answers.get(analysis.base_name)
        if result is None:
            result = store.run(analysis.base_name, version=analysis.version, **values)
    except HtaSqlError as error:
        return Written(section, "", f"Not available: {error}")
    if not len(result):
        return Written(section, "", no_rows(analysis, answers["rank_health"].records()))
    if lacks := _lacking(section, result):
        return Written(section, "", lacks)
    spec = _spec(result) if section.has_chart else ""
    if not isinstance(spec, str) and (sentence := _one_point(spec)) is not None:
        if sentence:
            return Written(section, "", sentence)
        spec = ""
    notes = _notes_of(spec)
    notes = notes + "." * (notes[-1:] not in {".", ""})
    notes = " ".join(
        filter(None, (notes, scope_of(analysis, values, answers["rank_health"].records())))
    )
    chart = chart_markup(result, spec, f"chart-{analysis.base_name}") if spec else ""
    table = table_markup(result, rows) if section.has_table else ""
    if chart.startswith('<div class="chart"') and table:
        rows_said = f"Table: {counted(len(result), 'row')}"
        table = f'<details class="rows"><summary>{rows_said}</summary>{table}</details>'
    said = html.escape(f"{analysis.summary} ({analysis.base_name})")
    parts = [
        f'<section id="{analysis.base_name}">',
        f'<h3 title="{said}">{html.escape(section.title)}</h3>',
        f'<p class="quiet notes">{html.escape(notes)}</p>' if notes else "",
        chart,
        table,
        sql_markup(analysis, values),
        "</section>",
    ]
    return Written(section, "\n".join(parts))


def _notes_of(spec: dict[str, Any] | str) -> str:
    """Take the heading off a chart, which stands above it on the page; its notes follow as a text."""
    title = spec.pop("title", None) if isinstance(spec, dict) else None
    lines = title.get("subtitle", ()) if isinstance(title, dict) else ()
    return " ".join([lines] if isinstance(lines, str) else lines)


def _not_asked(store: TraceStore, section: Section, values: Mapping[str, Any]) -> str:
    """Say why an analysis is not asked at all."""
    analysis = section.analysis
    ranks = len(values.get("ranks") or store.ranks())
    if section.max_ranks is not None and ranks > section.max_ranks:
        return f"Left out: {ranks:,} ranks are too many for a page."
    lacking = [p.name for p in analysis.parameters if p.default is None and p.name not in values]
    if lacking:
        return f"Asks for {_names_of(lacking)}: {_asked_by(analysis, lacking)}"
    one_run = len(values.get("runs") or store.runs()) == 1
    if one_run and analysis.facts.get("Needs", "").startswith("two runs"):
        return no_rows(analysis)
    if (section.compares == "runs" and one_run) or (section.compares == "ranks" and ranks == 1):
        return f"Compares {section.compares}; there is only one {section.compares[:-1]} here."
    return ""


def _names_of(parameters: list[str]) -> str:
    """Write what an analysis must be told in words: a pattern, an operator name."""
    words = [column_words(name, None).lower() for name in parameters]
    return " and ".join(f"{'an' if word[0] in 'aeiou' else 'a'} {word}" for word in words)


def _asked_by(analysis: SqlObject, parameters: list[str]) -> str:
    """Write the command that asks for it with values of one's own."""
    options = " ".join(f"--{name.replace('_', '-')} …" for name in parameters)
    return f"hta-sql run STORE {analysis.base_name} {options}"


def not_on_paper(left: list[Written]) -> str:
    """Say what a panel has on a screen, and not on paper."""
    if not left:
        return ""
    names = ", ".join(one.section.title for one in left)
    return f'<p class="quiet left">Not on paper: {html.escape(names)}.</p>'


def not_shown(left: list[Written]) -> str:
    """List what has nothing to show, by the reason."""
    of: dict[str, list[Section]] = {}
    for one in left:
        of.setdefault(one.reason, []).append(one.section)
    groups = []
    for reason, sections in sorted(of.items()):
        items = "".join(
            f'<li id="{s.name}" title="{html.escape(f"{s.analysis.summary} ({s.name})")}">'
            f"{html.escape(s.title)}</li>"
            for s in sections
        )
        groups.append(f"<ul>{items}</ul><p>{html.escape(shortly(reason))}</p>")
    return (
        '<section id="not-shown"><h2>Not shown</h2>'
        f'<div class="lacking"><b>Analysis</b><b>Why it is not shown</b>{"".join(groups)}</div></section>'
    )


def _spec(result: Result) -> dict[str, Any] | str:
    """Draw a result, or say why that failed."""
    try:
        # The tests hold every figure to the schema; asking again for each report takes a third of its time.
        with debug_mode(False):
            return spec_of(result.chart())
    except Exception as error:  # one picture that fails must not cost the whole page
        if not isinstance(error, HtaSqlError):
            log.exception("A chart failed.")
        return f"The chart could not be drawn: {error}"


def chart_markup(result: Result, spec: dict[str, Any] | str, key: str) -> str:
    """Write the place of a chart, or why there is none."""
    if isinstance(spec, str):
        return missing(spec)
    if len(json.dumps(spec)) > CHART_BYTES:
        return missing("The chart is too large for a page; the table and the SQL have its numbers.")
    return chart_place(key, spec, _in_words(result))


def _one_point(spec: dict[str, Any]) -> str | None:
    """Of a chart of one point the sentence that it says, which may be none; None of any other chart."""
    sets = list(spec["datasets"].values())
    # A row that is folded is a bar of several parts.
    if any(len(rows) > 1 for rows in sets) or '"fold"' in json.dumps(spec):
        return None
    return " ".join(row["text"] for rows in sets for row in rows if "text" in row)


def _in_words(result: Result) -> str:
    """Say what a chart shows: the figures of its first rows."""
    table = result.arrow().slice(0, TOLD_ROWS)
    fields = list(zip(table.schema, table.columns, strict=True))[:TOLD_COLUMNS]
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


def no_rows(analysis: SqlObject, health: Sequence[Mapping[str, Any]] = ()) -> str:
    """Say why a result is empty: nothing was found, or the traces lack what it needs.

    Args:
        analysis: What was asked.
        health: Rows of ``rank_health``, which count what there is.
    """
    needs = analysis.facts.get("Needs", "nothing")
    first, _, rest = needs.partition("; ")
    if first.startswith("nothing"):
        return f"{_NOTHING}{rest[:1].upper()}{rest[1:]}." if rest else "Nothing to report."
    counts = [_COUNTS.get(part) for part in re.split(", | and ", first)]
    if all(count and any(row[count] for row in health) for count in counts):
        return f"None found, though there are {first}."
    asked = [name for name, *_ in _DEFAULT.findall(needs)]
    needs = _DEFAULT.sub(r"\3\2", needs)
    other = f" For another: {_asked_by(analysis, asked)}" if asked else ""
    return f"{_NOTHING}Needs: {needs}.{other}"


def _lacking(section: Section, result: Result) -> str:
    """Return what to say if the column that a section is about is unknown in every row."""
    column, sentence = section.needed
    return sentence if column and result.arrow().column(column).null_count == len(result) else ""


def shortly(reason: str) -> str:
    """Leave out what is said of everything that is not shown."""
    return reason.removeprefix(_NOTHING)


def linked(text: str, sections: set[str]) -> str:
    """Write a message; analyses that it names are called by their headings, which lead there.

    Args:
        text: With names out of traces.
        sections: Analyses that have a section on the page.
    """
    analyses = {analysis.base_name: analysis for analysis in load_library().newest()}

    def named(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in analyses:
            return found[0]
        words = f"“{html.escape(analyses[name].title)}”"
        link = f'<a href="#{name}">{words}</a>' if name in sections else words
        return f"{found['before'] or ''}{link}"

    return _NAMED.sub(named, sentence(text))


def missing(sentence: str) -> str:
    """Write a sentence in place of what is not there."""
    return f'<p class="missing">{html.escape(sentence)}</p>'


def parameters_of(analysis: SqlObject, values: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the values of those parameters that an analysis has."""
    known = {parameter.name for parameter in analysis.parameters}
    return {key: value for key, value in values.items() if key in known}


def sql_markup(analysis: SqlObject, values: Mapping[str, Any]) -> str:
    """Write the call that can be pasted into any DuckDB shell, and the source behind it, collapsed."""
    call = html.escape(pasteable(analysis, values))
    words = "".join(
        f"<p>{html.escape(part)}</p>" for part in analysis.description.split("\n\n") if part
    )
    return (
        f'<details class="sql"><summary>SQL and definitions: {analysis.name}</summary>{words}'
        f'<div><pre>{call}</pre><button type="button" class="copy">Copy</button></div>'
        f"<details><summary>Source</summary><pre>{html.escape(analysis.text)}</pre></details>"
        "</details>"
    )


def pasteable(analysis: SqlObject, values: Mapping[str, Any]) -> str:
    """Write the call of an analysis with its values, for a shell on the store's catalog."""
    return (
        sqltext.call(analysis.name, {key: _literal(value) for key, value in values.items()}) + ";"
    )


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return sqltext.literal_list(value)
    return sqltext.literal(value)
