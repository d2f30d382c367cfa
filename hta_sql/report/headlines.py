"""The top of the page: what it is about, what costs most, and what limits its numbers."""

from __future__ import annotations

import html
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from hta_sql.charts.palette import CAUSE_COLOURS, PART_COLOURS
from hta_sql.charts.waits import STEP_PARTS
from hta_sql.library.objects import load_library
from hta_sql.report.headings import sentence
from hta_sql.report.sections import Answers, missing, no_rows, parameters_of, sql_markup
from hta_sql.report.tables import table_markup
from hta_sql.text import cut_middle, printable, rank_spans, time_text

RUNS = 6
"""So many runs get statements of their own; the table has all."""
SUBJECT_CHARACTERS = 120
SMALL_PCT = 0.1
"""A cost below this share of the time of the steps is no statement."""

_NAMES = {
    "idle_before": "Idle at the start of steps",
    "idle_host": "Waiting for the next launch",
    "idle_queued": "Idle with work in the queue",
    "idle_unknown": "Idle, cause not in the trace",
    "idle_after": "Idle at the end of steps",
    "exposed_transfer": "Exposed transfers",
    "exposed_wait": "Waiting for other ranks",
    "exposed_memory": "Exposed copies",
    "kernel": "Kernel",
}

_COLOURS = {
    "idle_before": STEP_PARTS["idle_before_ns"][1],
    "idle_host": CAUSE_COLOURS["host_wait"],
    "idle_queued": PART_COLOURS["idle"],
    "idle_unknown": PART_COLOURS["idle"],
    "idle_after": STEP_PARTS["idle_after_ns"][1],
    "exposed_transfer": STEP_PARTS["exposed_transfer_ns"][1],
    "exposed_wait": STEP_PARTS["exposed_wait_ns"][1],
    "exposed_memory": STEP_PARTS["exposed_memory_ns"][1],
    "kernel": PART_COLOURS["computation"],
}


def costs_markup(answers: Answers, scope: Mapping[str, Any], rows: int) -> str:
    """Rank what GPU time goes to, as statements with numbers."""
    analysis = load_library().find("top_costs")
    result = answers["top_costs"]
    parts = ['<section id="costs">', "<h2>What costs most</h2>"]
    if not len(result):
        parts.append(missing(no_rows(analysis)))
    else:
        parts.append(
            '<p class="quiet">Shares of the time of the steps, all ranks together. Idle and exposed '
            "times exclude each other; kernels are what the rest is spent on.</p>"
        )
        runs = [
            (run, list(same)) for run, same in groupby(result.records(), key=lambda r: r["run"])
        ]
        parts += [_costs_of_run(run, costs, several=len(runs) > 1) for run, costs in runs[:RUNS]]
        parts.append(
            f"<details><summary>As a table</summary>{table_markup(result, rows)}</details>"
        )
    parts += [sql_markup(analysis, parameters_of(analysis, scope)), "</section>"]
    return "\n".join(parts)


def _costs_of_run(run: str, costs: list[dict[str, Any]], *, several: bool) -> str:
    heading = f"<h3>Run {html.escape(printable(run))}</h3>" if several else ""
    stated = [row for row in costs if row["cost_pct"] is None or row["cost_pct"] >= SMALL_PCT]
    items = "".join(map(_statement, stated))
    left = len(costs) - len(stated)
    rest = f'<p class="quiet">{left} below {SMALL_PCT} % of the time.</p>' if left else ""
    return f'{heading}<ol class="costs">{items}</ol>{rest}'


def _statement(row: dict[str, Any]) -> str:
    share = row["cost_pct"]
    shown = f"{share:.1f} %" if share is not None else "–"  # noqa: RUF001 - as in tables
    name = html.escape(_NAMES.get(row["cost"], row["cost"]))
    if row["subject"] is not None:
        subject = cut_middle(printable(row["subject"]), SUBJECT_CHARACTERS)
        name += f" <code>{html.escape(subject)}</code>"
    number = f"{time_text(row['cost_ns'])} in all"
    if row["event_count"] is not None:
        what = "launches" if row["cost"] == "kernel" else "gaps"
        number += f" in {row['event_count']:,} {what}"
    if row["worst_rank_ns"] != row["cost_ns"]:
        where = "longest is rank" if row["cost"] == "exposed_wait" else "most on rank"
        number += f"; {where} {row['worst_rank']}: {time_text(row['worst_rank_ns'])}"
        if row["worst_rank_pct"] is not None:
            number += f", {row['worst_rank_pct']:.1f} % of its time"
    message = "" if row["cost"] == "kernel" else f"{row['message']} "
    return (
        f'<li><span class="share">{shown}</span><div><b>{name}</b><br>{sentence(f"{message}{number}")}. '
        f'<a href="#{html.escape(row["look_at"])}">Look closer</a></div>'
        f'<span class="bar"><span style="width:{share or 0:.1f}%;background:{_COLOURS[row["cost"]]}">'
        "</span></span></li>"
    )


def findings_markup(answers: Answers, scope: Mapping[str, Any]) -> str:
    """List what is missing from the traces or wrong with them; notes are collapsed."""
    analysis = load_library().find("findings")
    found = answers["findings"].records()
    loud = [row for row in found if row["severity"] != "note"]
    quiet = [row for row in found if row["severity"] == "note"]
    parts = ['<section id="findings">', "<h2>What limits these numbers</h2>"]
    if not loud:
        parts.append("<p>No error and no warning about these traces.</p>")
    parts.append(_grouped(loud))
    if quiet:
        count = len({(row["run"], row["finding"]) for row in quiet})
        parts.append(
            f"<details><summary>{count} more note{'s' if count != 1 else ''}</summary>"
            f"{_grouped(quiet)}</details>"
        )
    parts += [sql_markup(analysis, parameters_of(analysis, scope)), "</section>"]
    return "\n".join(parts)


def _grouped(found: list[dict[str, Any]]) -> str:
    """Write each finding once, with the ranks that it is about."""
    several = len({row["run"] for row in found}) > 1
    items = []
    for (run, severity, _), group in groupby(
        found, key=lambda row: (row["run"], row["severity"], row["finding"])
    ):
        same = list(group)
        first, *others = same
        where = [f"run {run}"] if several else []
        where += [f"rank {first['rank']}"] if first["rank"] is not None else []
        place = ", ".join(where)
        text = f"{place[:1].upper()}{place[1:]}: {first['message']}" if place else first["message"]
        if others:
            ranks = rank_spans(row["rank"] for row in others)
            text += (
                f" The same on rank{'s' if len(others) > 1 else ''} {ranks}, with other numbers."
            )
        text = sentence(f"{text} {first['limits']} {first['remedy']}")
        items.append(f'<li><span class="tag {severity}">{severity}</span>{text}</li>')
    return f'<ul class="findings">{"".join(items)}</ul>' if items else ""
