"""What to do: the rules that speak, as cards on the first screen."""

from __future__ import annotations

import html
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from hta_sql.charts.style import duration_text
from hta_sql.library.objects import load_library
from hta_sql.report.sections import missing, no_rows, parameters_of, sql_markup
from hta_sql.report.tables import table_markup
from hta_sql.words import cut_middle, printable

if TYPE_CHECKING:
    from hta_sql.report.sections import Answers

CARDS = 6
"""So many rules have a card; the table has all."""

RUNS = 6
SUBJECT_CHARACTERS = 80


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


def _card(row: dict[str, Any], sections: set[str]) -> str:
    saved = row["step_saved_ns"]
    ceiling = (
        f'<span class="ceiling" title="of the steps">≤ {duration_text(saved)} a step, {row["ceiling_pct"]:.1f} %</span>'
        if saved is not None
        else ""
    )
    subject = ""
    if row["subject"]:
        name = printable(cut_middle(row["subject"], SUBJECT_CHARACTERS))
        subject = f" Most: <code>{html.escape(name)}</code>."
    ranks = f"{row['rank_count']} ranks, most on rank" if row["rank_count"] > 1 else "Rank"
    where = f"{ranks} {row['rank']}; confidence {row['confidence']}."
    look = row["next_analysis"]
    link = f' <a href="#{html.escape(look)}">Look closer</a>' if look in sections else ""
    return (
        f'<div class="{row["severity"]}">{ceiling}<b>{html.escape(row["title"])}</b>'
        f"<p>{html.escape(printable(row['message']))}{subject}</p><p>{html.escape(row['remedy'])}</p>"
        f'<p class="quiet">{html.escape(where)}{link}</p></div>'
    )
