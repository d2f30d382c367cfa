"""The first screen: where a step goes, who is late, and the step of each rank."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from hta_sql.charts.style import DARK, duration_text
from hta_sql.charts.waits import STEP_PARTS
from hta_sql.library.objects import load_library
from hta_sql.report.sections import missing, no_rows, parameters_of, sql_markup
from hta_sql.words import counted, printable

if TYPE_CHECKING:
    from hta_sql.report.sections import Answers

RUNS = 6
"""So many runs have a first screen of their own."""

RANKS = 16
"""So many ranks have a bar; of more, those that are late and those whose steps differ most."""

LABELLED_SHARE = 0.08
"""Parts as wide as this have room for their time."""

Row = dict[str, Any]


def overview_markup(answers: Answers, scope: Mapping[str, Any]) -> str:
    """Write the first screen of each run."""
    steps, late = (load_library().find(name) for name in ("step_accounting", "stragglers"))
    accounted = answers["step_accounting"].records()
    told = answers["stragglers"].records()
    parts = ['<section id="overview">']
    if not accounted:
        parts.append(missing(no_rows(steps)))
    runs = [(run, list(rows)) for run, rows in groupby(accounted, key=lambda row: row["run"])]
    for run, rows in runs[:RUNS]:
        of_run = [row for row in told if row["run"] == run]
        parts += _of_run(rows, of_run, name=run if len(runs) > 1 else "")
    parts += [sql_markup(a, parameters_of(a, scope)) for a in (steps, late)]
    return "\n".join([*parts, "</section>"])


def _of_run(rows: list[Row], told: list[Row], *, name: str) -> Iterator[str]:
    whole = _mean(rows)
    step = whole["step_ns"]
    named = f"{html.escape(printable(name))}: a" if name else "A"
    share = f"; GPUs compute {whole['compute_ns'] / step:.0%} of it" if step else ""
    yield f"<h2>{named} step takes {duration_text(step)}{share}</h2>"
    yield _bar(whole, step, labelled=True)
    yield _key(whole)
    yield from _sentences(told)
    yield _ranks(rows, told)


def _mean(rows: Iterable[Row]) -> dict[str, float]:
    """Average the steps; the parts still add up to the step."""
    listed = list(rows)
    names = ["step_ns", *(part for part in STEP_PARTS if part in listed[0])]
    return {name: sum(row[name] or 0 for row in listed) / len(listed) for name in names}


def _bar(means: Mapping[str, float], longest: float, *, labelled: bool = False) -> str:
    """Write the parts side by side, as wide as they take of the longest step."""
    pieces = []
    for name, (words, colour) in STEP_PARTS.items():
        part = means.get(name, 0) / longest if longest else 0
        if part <= 0:
            continue
        text = f"{duration_text(means[name])}" if labelled and part >= LABELLED_SHARE else ""
        ink = "white" if colour in DARK else "#1b1b1b"
        title = f"{words}: {duration_text(means[name])}, {part:.1%}"
        pieces.append(
            f'<span style="width:{100 * part:.3f}%;background:{colour};color:{ink}" '
            f'title="{title}">{text}</span>'
        )
    told = "; ".join(
        f"{words} {duration_text(means[name])}"
        for name, (words, _) in STEP_PARTS.items()
        if means.get(name)
    )
    return f'<div class="step" role="img" aria-label="{html.escape(told)}">{"".join(pieces)}</div>'


def _key(means: Mapping[str, float]) -> str:
    step = means["step_ns"]
    items = "".join(
        f'<li><i style="background:{colour}"></i>{words} {means[name] / step:.0%}</li>'
        for name, (words, colour) in STEP_PARTS.items()
        if means.get(name)
    )
    return (
        f'<ul class="key">{items}</ul><p class="quiet">Mean of all ranks and steps. Transfer, wait '
        "for other ranks and copies: while nothing computes.</p>"
    )


def _sentences(told: list[Row]) -> Iterator[str]:
    """Say who is late, or that nobody is."""
    late = [row for row in told if row["is_straggler"]]
    for row in late:
        message = html.escape(printable(row["message"]))
        yield f'<p class="say late">{message} <a href="#stragglers">Look closer</a></p>'
    judged = [row for row in told if row["is_straggler"] is not None]
    if judged and not late:
        text = f"No rank holds up the others by habit: {counted(len(judged), 'rank')} compared."
        most = max(judged, key=lambda row: (row["reason"] is not None, row["excess_ns"]))
        if most["reason"] is not None:
            text += f" Rank {most['rank']} cost most: {most['reason']}."
        yield f'<p class="say">{html.escape(printable(text))}</p>'
    elif told and not late:
        reason = html.escape(printable(told[0]["reason"] or "no collective is matched"))
        yield f'<p class="quiet">Whether a rank is late cannot be said: {reason}</p>'


def _ranks(rows: list[Row], told: list[Row]) -> str:
    late = {row["rank"]: row["cause"] for row in told if row["is_straggler"]}
    by_rank: dict[int, list[Row]] = {}
    for row in rows:
        by_rank.setdefault(row["rank"], []).append(row)
    means = {rank: _mean(steps) for rank, steps in by_rank.items()}
    if len(means) == 1:
        return ""
    longest = max(mean["step_ns"] for mean in means.values())
    shown = _chosen(means, late)
    lines = "".join(
        f"<span>rank {rank}</span>{_bar(means[rank], longest)}<em>{_remark(means[rank], late.get(rank))}</em>"
        for rank in shown
    )
    left = len(means) - len(shown)
    rest = f'<p class="quiet">{left:,} more ranks below.</p>' if left else ""
    return f'<div class="ranks">{lines}</div>{rest}'


def _chosen(means: Mapping[int, Mapping[str, float]], late: Mapping[int, str]) -> list[int]:
    middle = sorted(mean["exposed_wait_ns"] for mean in means.values())[len(means) // 2]
    unusual = sorted(
        means,
        key=lambda rank: (rank not in late, -abs(means[rank]["exposed_wait_ns"] - middle), rank),
    )
    return sorted(unusual[:RANKS])


def _remark(mean: Mapping[str, float], cause: str | None) -> str:
    if cause is not None:
        return f"<b>late</b>: {html.escape(cause)}"
    return f"waits {duration_text(mean['exposed_wait_ns'])}"
