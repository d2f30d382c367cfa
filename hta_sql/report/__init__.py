"""One HTML file about a store: what costs most, then every topic with charts, tables and the SQL.

The file needs nothing but a browser: no network, no server, no other file. Results come from the
store, pictures from :mod:`hta_sql.charts`; here they are only put on a page.
"""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hta_sql._version import __version__
from hta_sql.charts.page import Page
from hta_sql.report.advice import advice_markup
from hta_sql.report.contents import Topic, topics
from hta_sql.report.headlines import costs_markup, findings_markup
from hta_sql.report.overview import overview_markup
from hta_sql.report.questions import questions_markup
from hta_sql.report.sections import (
    PAPER,
    Answers,
    Written,
    first_answers,
    not_on_paper,
    not_shown,
    written,
)
from hta_sql.report.tiles import figures_markup
from hta_sql.store.query.trace_store import TraceStore
from hta_sql.text import printable
from hta_sql.traces.writing import replacing

__all__ = ["write_report"]

Progress = Callable[[str, int, int], None]

ROWS = 200
"""Rows of a table on the page; what is left out is said below it."""


def write_report(
    store: TraceStore,
    path: str | os.PathLike[str],
    *,
    runs: Iterable[str] | None = None,
    ranks: Iterable[int] | None = None,
    title: str | None = None,
    rows: int = ROWS,
    progress: Progress | None = None,
) -> Path:
    """Write a report about a store into one HTML file.

    Args:
        store: The store, opened.
        path: Where to; appears when it is complete.
        runs: Runs to include; default: all.
        ranks: Ranks to include; default: all.
        title: Its title; default: the names of the runs.
        rows: Rows that a table keeps on the page.
        progress: Called before each analysis with (name, analyses done, analyses to do).

    Returns:
        The path.

    Raises:
        RankError: No such run or rank in the store.
    """
    scope: dict[str, Any] = {"runs": list(runs) if runs else None}
    scope["ranks"] = list(ranks) if ranks else None
    given = {key: value for key, value in scope.items() if value is not None}
    contents = topics(store.library)
    total = sum(len(topic.sections) for topic in contents) + 1
    report = progress or (lambda *_: None)

    report("the first screen", 0, total)
    answers = first_answers(store, given)
    sections: dict[str, list[Written]] = {}
    done = 1
    for topic in contents:
        for section in topic.sections:
            report(section.name, done, total)
            sections.setdefault(topic.key, []).append(written(store, section, given, rows, answers))
            done += 1
    heading = title or _default_title(given.get("runs") or store.runs())
    page = Page(f"{heading}: GPU performance")
    panels = _panels(contents, sections, answers, given, rows)
    page.add(_navigation(heading, panels))
    page.add("<main>")
    page.add(f'<p class="job-name" aria-hidden="true">{_broken(heading)}</p>')
    page.add('<form class="pick" hidden></form>')
    for panel in panels:
        page.add(f'<div class="panel">{panel.markup}</div>')
    page.add(
        f'<p class="quiet foot">Written by hta-sql {html.escape(__version__)}. {_HOW_TO_USE}</p>'
    )
    page.add(f"</main>{figures_markup(answers)}")
    with replacing(Path(path)) as partial:
        partial.write_text(page.text(), encoding="utf-8")
    return Path(path)


class Panel(NamedTuple):
    """What the side bar leads to: the id of its first element, its name there, its content, ids and names in it."""

    key: str
    name: str
    markup: str
    parts: tuple[tuple[str, str], ...] = ()


def _panels(
    contents: list[Topic],
    sections: Mapping[str, list[Written]],
    answers: Answers,
    scope: Mapping[str, Any],
    rows: int,
) -> list[Panel]:
    """Put sections into panels, in the order of the side bar; what has nothing to show into one list."""
    shown = {one.section.name for some in sections.values() for one in some if one.markup}
    left = [one for some in sections.values() for one in some if not one.markup]
    questions = questions_markup(shown, {one.section.name: one.reason for one in left})
    panels = [
        Panel("overview", "Overview", overview_markup(answers, shown, questions)),
        Panel("advice", "What to do", advice_markup(answers, scope, shown, rows)),
        Panel("costs", "What costs most", costs_markup(answers, scope, rows)),
    ]
    for topic in contents:
        there = [one for one in sections[topic.key] if one.markup]
        if there:
            key = f"topic-{topic.key}"
            head = f'<h2 id="{key}">{html.escape(topic.title)}</h2>'
            parts = tuple((one.section.name, one.section.title) for one in there)
            markup = "".join(one.markup for one in there) + not_on_paper(there[PAPER:])
            panels.append(Panel(key, topic.title, head + markup, parts))
    panels.append(Panel("findings", "What limits these numbers", findings_markup(answers, scope)))
    if left:
        panels.append(Panel("not-shown", f"Not shown ({len(left)})", not_shown(left)))
    return panels


_HOW_TO_USE = (
    "Charts: hold the pointer over a mark for its numbers; histograms and charts of many ranks move "
    "by dragging and zoom by Ctrl + wheel. Tables sort by a click on a heading. Times on the page "
    "are rounded; the SQL below each section gives them exactly, in nanoseconds."
)


def _default_title(runs: list[str]) -> str:
    shown = ", ".join(runs[:3])
    return shown + (f" and {len(runs) - 3} more runs" if len(runs) > 3 else "")


def _navigation(heading: str, panels: list[Panel]) -> str:
    items = []
    for one in panels:
        items.append(f'<a href="#{one.key}">{html.escape(one.name)}</a>')
        if len(one.parts) > 1:
            inside = (f'<a href="#{key}">{html.escape(name)}</a>' for key, name in one.parts)
            items.append(f"<div>{''.join(inside)}</div>")
    return f'<nav aria-label="Topics"><h1>{_broken(heading)}</h1>{"".join(items)}</nav>'


def _broken(name: str) -> str:
    """Write names of runs, which may be cut into lines behind what joins their words."""
    return html.escape(printable(name)).replace("_", "_<wbr>")
