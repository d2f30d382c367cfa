"""Renders statements about the main costs, and findings about data that limits the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from markupsafe import Markup

from hta_sql.charts.drawing.palette import COLORS
from hta_sql.library.parameters import taken_by
from hta_sql.report.first_screen import FirstScreen, analysis_of
from hta_sql.report.reasons import no_rows
from hta_sql.report.rendering import render
from hta_sql.report.sql_calls import sql_markup
from hta_sql.report.tables import table_markup
from hta_sql.text import cut_middle, printable, rank_spans, time_text

RUNS = 6
"""Maximum number of runs with statements; the table lists all runs."""
SUBJECT_CHARACTERS = 120
SMALL_PCT = 0.1
"""Minimum cost for a statement, relative to the step time [%]."""

_NAMES = {
    "idle_host": "Waiting for the next launch",
    "idle_queued": "Idle with work in the queue",
    "idle_unknown": "Idle, cause not in the trace",
    "unrecorded": "Work outside the recording",
    "exposed_transfer": "Exposed transfers",
    "exposed_unmatched": "Exposed transfers or waits",
    "exposed_wait": "Waiting for other ranks",
    "exposed_memory": "Exposed copies",
    "kernel": "Kernel",
}

_COLORS = {
    "idle_host": COLORS["wait"],
    "idle_queued": COLORS["idle"],
    "idle_unknown": COLORS["idle"],
    "unrecorded": COLORS["unrecorded"],
    "exposed_transfer": COLORS["communication"],
    "exposed_unmatched": COLORS["unmatched"],
    "exposed_wait": COLORS["wait"],
    "exposed_memory": COLORS["memory"],
    "kernel": COLORS["computation"],
}


def costs_markup(first: FirstScreen, scope: Mapping[str, Any], rows: int) -> Markup:
    """Render the costs of GPU time as statements with numbers, largest first."""
    result = first.top_costs
    analysis = analysis_of(result)
    runs = [
        (run, list(costs)) for run, costs in groupby(result.records(), key=lambda row: row["run"])
    ]
    return render(
        "costs",
        reason=first.failure_of(result)
        or ("" if len(result) else no_rows(analysis, first.rank_health.records())),
        runs=[_costs_of_run(run, costs) for run, costs in runs[:RUNS]],
        is_several=len(runs) > 1,
        is_partial=any(row["cost"] == "unrecorded" for _, costs in runs for row in costs),
        small=SMALL_PCT,
        table=table_markup(result, rows) if len(result) else "",
        sql=sql_markup(analysis, taken_by(analysis, scope)),
    )


def _costs_of_run(run: str, costs: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]], int]:
    """Return the run, the costs that are large enough for a statement, and the number of others."""
    stated = [row for row in costs if row["cost_pct"] is None or row["cost_pct"] >= SMALL_PCT]
    return run, [_statement(row) for row in stated], len(costs) - len(stated)


def _statement(row: dict[str, Any]) -> dict[str, Any]:
    share = row["cost_pct"]
    number = f"{time_text(row['cost_ns'])} in total"
    if row["event_count"] is not None:
        one, more = ("launch", "launches") if row["cost"] == "kernel" else ("gap", "gaps")
        number += f" in {row['event_count']:,} {one if row['event_count'] == 1 else more}"
    if row["worst_rank_ns"] != row["cost_ns"]:
        where = "longest on rank" if row["cost"] == "exposed_wait" else "most on rank"
        number += f"; {where} {row['worst_rank']}: {time_text(row['worst_rank_ns'])}"
        if row["worst_rank_pct"] is not None:
            number += f", {row['worst_rank_pct']:.1f} % of its time"
    subject = row["subject"]
    return {
        "share": f"{share:.1f} %" if share is not None else "–",  # noqa: RUF001 - same dash as in tables
        "width": f"{share or 0:.1f}",
        "color": _COLORS[row["cost"]],
        "name": _NAMES.get(row["cost"], row["cost"]),
        "subject": subject and cut_middle(printable(subject), SUBJECT_CHARACTERS),
        "text": number if row["cost"] == "kernel" else f"{row['message']} {number}",
        "section": row["next_analysis"],
    }


def findings_markup(first: FirstScreen, scope: Mapping[str, Any]) -> Markup:
    """Render the findings: missing or wrong data in the traces; notes are collapsed."""
    analysis = analysis_of(first.findings)
    found = first.findings.records()
    loud = [row for row in found if row["severity"] != "note"]
    quiet = [row for row in found if row["severity"] == "note"]
    return render(
        "findings",
        failure=first.failure_of(first.findings),
        loud=list(_grouped(loud)),
        quiet=list(_grouped(quiet)),
        quiet_count=len({(row["run"], row["finding"]) for row in quiet}),
        sql=sql_markup(analysis, taken_by(analysis, scope)),
    )


def _grouped(found: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield severity and text of each finding once, with the affected ranks."""
    several = len({row["run"] for row in found}) > 1
    for (run, severity, _), group in groupby(
        found, key=lambda row: (row["run"], row["severity"], row["finding"])
    ):
        first, *others = group
        where = [f"run {run}"] if several else []
        where += [f"rank {first['rank']}"] if first["rank"] is not None else []
        place = ", ".join(where)
        text = f"{place[:1].upper()}{place[1:]}: {first['message']}" if place else first["message"]
        if others:
            ranks = rank_spans(row["rank"] for row in others)
            text += (
                f" Also on rank{'s' if len(others) > 1 else ''} {ranks}, with different numbers."
            )
        yield severity, f"{text} {first['limits']} {first['remedy']}"
