"""Renders the recommendations as cards on the first screen, and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from markupsafe import Markup

from hta_sql.library.parameters import taken_by
from hta_sql.report.first_screen import FirstScreen, analysis_of
from hta_sql.report.links import linked
from hta_sql.report.reasons import no_rows
from hta_sql.report.rendering import render
from hta_sql.report.sql_calls import sql_markup
from hta_sql.report.tables import table_markup
from hta_sql.text import cut_middle, duration_text, printable

CARDS = 6
"""Maximum number of rules with a card; the table lists all rules."""

FIRST = 3
"""Maximum number of cards on the first screen."""

RUNS = 6
SUBJECT_CHARACTERS = 80


def first_cards(first: FirstScreen, run: str, sections: set[str]) -> Markup:
    """Render the cards on the first screen: the recommendations that save a run the most."""
    worst = [row for row in first.advice.records() if row["is_worst"] and row["run"] == run]
    if not worst:
        return Markup()
    is_alone = sum(row["run"] == run for row in first.rank_health.records()) == 1
    cards = [_card(row, sections, is_short=True, is_alone=is_alone) for row in worst[:FIRST]]
    return render("first_cards", cards=cards, left=len(worst) - FIRST)


def advice_markup(
    first: FirstScreen, scope: Mapping[str, Any], sections: set[str], rows: int
) -> Markup:
    """Render a card for each rule that applies, largest saving first.

    Args:
        first: The results of the first screen.
        scope: Runs and ranks to include.
        sections: Analyses with a section on the page, to which a card can link.
        rows: Maximum rows of the table.
    """
    analysis = analysis_of(first.advice)
    worst = [row for row in first.advice.records() if row["is_worst"]]
    devices = (row["gpu_op_count"] for row in first.rank_health.records())
    has_devices = bool(first.failure_of(first.rank_health)) or any(devices)
    runs = [(run, list(same)) for run, same in groupby(worst, key=lambda row: row["run"])]
    return render(
        "advice",
        reason=first.failure_of(first.advice)
        or ("" if worst or has_devices else no_rows(analysis)),
        runs=[(run, [_card(row, sections) for row in same[:CARDS]]) for run, same in runs[:RUNS]],
        is_several=len(runs) > 1,
        table=table_markup(first.advice, rows) if worst else "",
        sql=sql_markup(analysis, taken_by(analysis, scope)),
    )


def _card(
    row: dict[str, Any], sections: set[str], *, is_short: bool = False, is_alone: bool = False
) -> dict[str, Any]:
    """Return the content of a card.

    Args:
        row: A row of ``advice``.
        sections: Analyses with a section on the page.
        is_short: Whether the card is on the first screen.
        is_alone: Whether the run has a single rank, which the card then does not mention.
    """
    saved, of_what = row["step_saved_ns"], "a step"
    if saved is None:
        saved, of_what = row["saved_ns"], "of the capture"
    ceiling = None
    if row["saved_ns"] is not None:
        has_share = not is_short and row["saved_pct"] is not None
        share = f" {of_what}, {row['saved_pct']:.1f} %" if has_share else ""
        ceiling = f"{duration_text(saved)}{share}"
    subject = row["subject"] and printable(cut_middle(row["subject"], SUBJECT_CHARACTERS))
    return {
        "severity": row["severity"],
        "id": f"advice-{row['finding_id']}",
        "section": row["next_analysis"] if row["next_analysis"] in sections else "",
        "ceiling": ceiling,
        "of_what": of_what,
        "title": row["title"],
        "message": linked(row["message"], sections),
        "remedy": linked(row["remedy"], sections),
        "subject": "" if subject and subject in row["message"] else subject,
        "ranks": "" if is_alone else _ranks(row),
        "confidence": row["confidence"],
        "evidence": printable(row["evidence_sql"] or ""),
    }


def _ranks(row: dict[str, Any]) -> str:
    if row["rank_count"] == 1:
        return f"Only rank {row['rank']}"
    return f"{row['rank_count']} ranks, most on rank {row['rank']}"
