"""Writes a report of a store as one HTML file: main costs, then each topic with charts and SQL.

The file needs only a browser: no network, no server, no other file. :mod:`~hta_sql.report.answers`
runs all analyses that the report needs; everything else renders their results.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from hta_sql._version import __version__
from hta_sql.charts.page import page_of
from hta_sql.report.advice import advice_markup
from hta_sql.report.answers import Answers, Progress, answers_of
from hta_sql.report.first_screen import questions_markup
from hta_sql.report.headlines import costs_markup, findings_markup
from hta_sql.report.overview import overview_markup
from hta_sql.report.rendering import render
from hta_sql.report.section import PAPER, Rendered, not_shown, rendered
from hta_sql.report.tiles import figures_markup
from hta_sql.store.query.trace_store import TraceStore
from hta_sql.text import printable
from hta_sql.traces.writing import replacing

__all__ = ["write_report"]

log = logging.getLogger(__name__)

ROWS = 200
"""Default maximum rows of a table on the page; a note counts the omitted ones."""


def write_report(
    store: TraceStore,
    path: str | os.PathLike[str],
    *,
    runs: Iterable[str] | None = None,
    ranks: Iterable[int] | None = None,
    roles: Iterable[str] | None = None,
    title: str | None = None,
    rows: int = ROWS,
    everything: bool = False,
    progress: Progress | None = None,
    failures: dict[str, str] | None = None,
) -> Path:
    """Write a report about a store into one HTML file.

    Each topic has its main sections, and those that the first screen, the recommendations and the
    findings about this job name.

    An analysis that the engine fails to compute costs only its section, which shows the error; a
    warning is logged.

    Args:
        store: The opened store.
        path: The HTML file; written atomically.
        runs: Runs to include; default: all.
        ranks: Ranks to include; default: all.
        roles: Include only ranks with these roles (column ``role`` of ``ranks``); default: all.
        title: Title of the page; default: the names of the runs.
        rows: Maximum rows of a table on the page.
        everything: Whether to include all sections, also those that nothing names.
        progress: Called before each analysis with (name, analyses done, total analyses).
        failures: Analyses that failed are added to it, with the reason.

    Returns:
        The path.

    Raises:
        RankError: A run, rank or role is not in the store.
    """
    runs = list(runs or ())
    if roles is not None:
        roles = [roles] if isinstance(roles, str) else sorted(roles)
        store = store.of_roles(roles)
        ranks = list(ranks or ()) or _common_ranks(store, runs)
    answers = answers_of(store, runs, ranks, progress or (lambda *_: None), everything=everything)
    hint = _HOW_TO_USE if roles is None else f"{_HOW_TO_USE} {_of_roles(roles)}"
    failures = {} if failures is None else failures
    text = page_text(
        answers, title or _default_title(answers.scope.runs), rows, hint, failures=failures
    )
    for reason in failures.values():
        log.warning("%s", reason)
    with replacing(Path(path)) as partial:
        partial.write_text(text, encoding="utf-8")
    return Path(path)


def _common_ranks(store: TraceStore, runs: Sequence[str]) -> list[int] | None:
    """Return the ranks if all runs have the same ones; the page's SQL then selects these ranks."""
    found = {tuple(store.ranks(run)) for run in runs or store.runs()}
    return list(found.pop()) if len(found) == 1 else None


def page_text(
    answers: Answers,
    title: str,
    rows: int = ROWS,
    hint: str = "",
    *,
    failures: dict[str, str] | None = None,
) -> str:
    """Render a report.

    Args:
        answers: The results to show.
        title: Title of the page.
        rows: Maximum rows of a table on the page.
        hint: How to use the page; default: without restrictions to roles.
        failures: Analyses that failed are added to it, with the reason.
    """
    panels, failed = _panels(answers, rows)
    if failures is not None:
        failures |= failed
    body = render(
        "report",
        # Allow line breaks after the underscores of run names.
        title=Markup("_<wbr>").join(printable(title).split("_")),
        panels=panels,
        version=__version__,
        how_to_use=hint or _HOW_TO_USE,
        figures=figures_markup(answers.first),
    )
    return page_of(f"{title}: performance", body)


class Panel(NamedTuple):
    """An entry of the side bar.

    The fields are the id of the panel's first element, the panel's name, its content, its sections,
    and its sections that are not printed.
    """

    key: str
    name: str
    markup: Markup
    sections: Sequence[Rendered] = ()
    unprinted: Sequence[Rendered] = ()


def _panels(answers: Answers, rows: int) -> tuple[list[Panel], dict[str, str]]:
    """Render the panels in side bar order; also return which analyses failed, and why.

    Sections without content are collected in one list.
    """
    first, scope = answers.first, answers.scope.given
    health = first.rank_health.records()
    sections = [rendered(answer, health, rows) for answer in answers.sections]
    left = [one for one in sections if not one.markup]
    there = [one for one in sections if one.markup]
    names = {one.section.name for one in there}
    reasons = {one.section.name: one.reason for one in left}
    failed = {one.section.analysis.base_name: one.reason for one in there if one.is_failed}
    has_events = bool(first.failure_of(first.jobs)) or any(
        job["event_count"] for job in first.jobs.records()
    )
    questions = questions_markup(names, reasons, has_events=has_events)
    panels = [
        Panel("overview", "Overview", overview_markup(first, names, questions)),
        Panel("advice", "What to do", advice_markup(first, scope, names, rows)),
        Panel("costs", "What costs the most", costs_markup(first, scope, rows)),
    ]
    for topic in answers.contents:
        own = [one for one in there if one.section.analysis.topic == topic.key]
        if own:
            markup = Markup().join(one.markup for one in own)
            panels.append(Panel(f"topic-{topic.key}", topic.title, markup, own, own[PAPER:]))
    panels.append(Panel("findings", "What limits these numbers", findings_markup(first, scope)))
    if answers.omitted:
        more = render("more", sections=answers.omitted)
        panels.append(Panel("more", f"More ({len(answers.omitted)})", more))
    if left:
        panels.append(Panel("not-shown", f"Not shown ({len(left)})", not_shown(left)))
    return panels, {**first.failures, **failed}


_HOW_TO_USE = (
    "Charts: hold the pointer over a mark for its numbers; histograms and charts of many ranks move "
    "by dragging and zoom by Ctrl + wheel. Tables sort by a click on a heading. Times on the page "
    "are rounded; the SQL below each section gives them exactly, in nanoseconds."
)


def _of_roles(roles: Iterable[str]) -> str:
    """Explain how the SQL on a page about some roles differs from the page."""
    named = ",".join(roles)
    return (
        f"This page compares only ranks with the role {named}. Its SQL selects these ranks, but "
        f"compares them with all ranks; hta-sql run STORE NAME --roles {named} returns the rows "
        "of the page."
    )


def _default_title(runs: Sequence[str]) -> str:
    shown = ", ".join(runs[:3])
    return shown + (f" and {len(runs) - 3} more runs" if len(runs) > 3 else "")
