"""What to do: the rules that speak, as cards on the first screen."""

from __future__ import annotations

import html
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from hta_sql.charts.style import duration_text
from hta_sql.library.objects import load_library
from hta_sql.report.sections import Answers, linked, missing, no_rows, parameters_of, sql_markup
from hta_sql.report.tables import table_markup
from hta_sql.text import cut_middle, printable

CARDS = 6
"""So many rules have a card; the table has all."""

FIRST = 3
"""So many stand on the first screen."""

RUNS = 6
SUBJECT_CHARACTERS = 80


def first_cards(answers: Answers, run: str, sections: set[str]) -> str:
    """Write the cards of the first screen: what saves most of a run."""
    worst = [row for row in answers["advice"].records() if row["is_worst"] and row["run"] == run]
    if not worst:
        return ""
    alone = sum(row["run"] == run for row in answers["rank_health"].records()) == 1
    cards = "".join(_card(row, sections, "" if alone else _ranks(row)) for row in worst[:FIRST])
    left = len(worst) - FIRST
    more = f' <a href="#advice">{left} more</a>' if left > 0 else ""
    return f'<h3>What to do{more}</h3><div class="advice">{cards}</div>'


def advice_markup(answers: Answers, scope: Mapping[str, Any], sections: set[str], rows: int) -> str:
    """Write a card for each rule, what saves most first.

    Args:
        answers: Those of the first screen.
        scope: Runs and ranks to include.
        sections: Analyses that have a section on the page, which a card can lead to.
        rows: Rows that the table keeps.
    """
    analysis = load_library().find("advice")
    parameters = parameters_of(analysis, scope)
    result = answers["advice"]
    parts = ['<section id="advice">', "<h2>What to do</h2>"]
    worst = [row for row in result.records() if row["is_worst"]]
    if not worst:
        has_devices = any(row["gpu_op_count"] for row in answers["rank_health"].records())
        text = "No rule finds what would save enough to matter."
        parts.append(f'<p class="quiet">{text}</p>' if has_devices else missing(no_rows(analysis)))
    else:
        parts.append(
            '<p class="quiet">At most: the time of the steps that a rule is about, on the rank where it '
            "is most. No promise, and two of them may be about the same time.</p>"
        )
        runs = [(run, list(same)) for run, same in groupby(worst, key=lambda row: row["run"])]
        for run, same in runs[:RUNS]:
            if len(runs) > 1:
                parts.append(f"<h3>Run {html.escape(printable(run))}</h3>")
            cards = "".join(_card(row, sections) for row in same[:CARDS])
            parts.append(f'<div class="advice">{cards}</div>')
        parts.append(
            f"<details><summary>As a table, with evidence</summary>{table_markup(result, rows)}</details>"
        )
    parts += [sql_markup(analysis, parameters), "</section>"]
    return "\n".join(parts)


def _card(row: dict[str, Any], sections: set[str], first: str | None = None) -> str:
    """Write a card; one of the first screen is short, and `first` says of which ranks it speaks."""
    look = row["next_analysis"]
    identity = f"advice-{html.escape(row['finding_id'])}"
    link = f'<a href="#{html.escape(look)}">Look closer</a>' if look in sections else ""
    ceiling = ""
    if row["ceiling_ns"] is not None:
        saved, of_what = row["step_saved_ns"], "a step"
        if saved is None:
            saved, of_what = row["ceiling_ns"], "of the capture"
        rest = f" {of_what}, {row['ceiling_pct']:.1f} %" if first is None else ""
        ceiling = f'<span class="ceiling" title="{of_what}, at most">≤ {duration_text(saved)}{rest}</span>'
    head = f"{ceiling}<b>{html.escape(row['title'])}</b><p>{linked(row['message'], sections)}"
    if first is not None:
        return (
            f'<div class="{row["severity"]}">{head}</p>'
            f'<p><a href="#{identity}">Evidence</a> {link} <span class="quiet">{first}</span></p></div>'
        )
    subject = ""
    if row["subject"]:
        name = printable(cut_middle(row["subject"], SUBJECT_CHARACTERS))
        subject = f" Most: <code>{html.escape(name)}</code>."
    where = f"{_ranks(row)}; confidence {row['confidence']}."
    evidence = html.escape(printable(row["evidence_sql"] or ""))
    return (
        f'<div class="{row["severity"]}" id="{identity}">{head}{subject}</p>'
        f'<p>{linked(row["remedy"], sections)}</p><p class="quiet">{html.escape(where)} {link}</p>'
        f"<details><summary>Evidence</summary><div><pre>{evidence}</pre>"
        '<button type="button" class="copy">Copy</button></div></details></div>'
    )


def _ranks(row: dict[str, Any]) -> str:
    if row["rank_count"] == 1:
        return f"Only rank {row['rank']}"
    return f"{row['rank_count']} ranks, most on rank {row['rank']}"
