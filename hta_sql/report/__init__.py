"""One HTML file about a store: what costs most, then every topic with charts, tables and the SQL.

The file needs nothing but a browser: no network, no server, no other file. Results come from the
store, pictures from :mod:`hta_sql.charts`; here they are only put on a page.
"""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hta_sql._version import __version__
from hta_sql.charts.page import Page
from hta_sql.report.advice import advice_markup
from hta_sql.report.contents import Topic, topics
from hta_sql.report.headlines import costs_markup, findings_markup, scope_markup
from hta_sql.report.overview import overview_markup
from hta_sql.report.sections import first_answers, section_markup
from hta_sql.traces.writing import replacing
from hta_sql.words import printable

if TYPE_CHECKING:
    from hta_sql.store.trace_store import TraceStore

    Progress = Callable[[str, int, int], None]

__all__ = ["write_report"]

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
    names = [section.name for topic in contents for section in topic.sections]
    total = len(names) + 1
    report = progress or _silent

    report("the first screen", 0, total)
    answers = first_answers(store, given)
    heading = title or _default_title(given.get("runs") or store.runs())
    page = Page(f"{heading}: GPU performance")
    page.add(f"<h1>{html.escape(printable(heading))}</h1>")
    page.add(scope_markup(answers))
    page.add(_navigation(contents))
    page.add(overview_markup(answers, given))
    page.add(advice_markup(answers, given, {*names, "findings", "top_costs"}, rows))
    page.add(costs_markup(answers, given, rows))
    page.add(findings_markup(answers, given))
    done = 1
    for topic in contents:
        page.add(f'<h2 id="topic-{topic.key}">{html.escape(topic.title)}</h2>')
        for section in topic.sections:
            report(section.name, done, total)
            page.add(section_markup(store, section, given, rows, answers))
            done += 1
    page.add(f'<p class="quiet">Written by hta-sql {html.escape(__version__)}. {_HOW_TO_USE}</p>')
    return _written(page.text(), Path(path))


_HOW_TO_USE = (
    "Charts: hold the pointer over a mark for its numbers; histograms and charts of many ranks move "
    "by dragging and zoom by Ctrl + wheel. Tables sort by a click on a heading. Times on the page "
    "are rounded; the SQL below each section gives them exactly, in nanoseconds."
)


def _default_title(runs: list[str]) -> str:
    shown = ", ".join(runs[:3])
    return shown + (f" and {len(runs) - 3} more runs" if len(runs) > 3 else "")


def _navigation(contents: list[Topic]) -> str:
    links = [
        ("overview", "Where a step goes"),
        ("advice", "What to do"),
        ("costs", "What costs most"),
        ("findings", "What limits these numbers"),
    ]
    links += [(f"topic-{topic.key}", topic.title) for topic in contents]
    items = "".join(f'<li><a href="#{key}">{html.escape(text)}</a></li>' for key, text in links)
    return f"<nav><ul>{items}</ul></nav>"


def _written(text: str, path: Path) -> Path:
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return path


def _silent(name: str, done: int, total: int) -> None:
    """Take progress and say nothing."""
