"""The first screen: what the job is, where a step goes, who is late, and the step of each rank."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from hta_sql.charts.palette import DARK, ON_COLOUR
from hta_sql.charts.style import duration_text
from hta_sql.charts.waits import STEP_PARTS
from hta_sql.library.objects import load_library
from hta_sql.report.advice import first_cards
from hta_sql.report.headings import sentence
from hta_sql.report.sections import Answers, linked, missing, no_rows
from hta_sql.report.tiles import job_text, tiles_markup
from hta_sql.text import cut_middle, printable

RUNS = 6
"""So many runs have a bar on the first screen."""

RANKS = 8
"""So many ranks have a bar; of more, those that are late and those whose waits differ most."""

LETTERS = 140
"""So many characters have room in the bar of a step."""

SUMMARISED = {"cluster_step_trace": "their steps", "links": "what they transfer"}
"""What summaries tell, and the sections with it."""

Row = dict[str, Any]


def overview_markup(answers: Answers, sections: set[str], questions: str = "") -> str:
    """Write the first screen: one run as a whole, several beside each other.

    Args:
        answers: Those of the first screen.
        sections: Analyses that have a section on the page, which it can lead to.
        questions: Links to the answers of the page.
    """
    accounted = answers["step_accounting"].records()
    runs = {run: list(rows) for run, rows in groupby(accounted, key=lambda row: row["run"])}
    parts = ['<section id="overview">']
    if not runs:
        parts.append(_without_steps(sections))
    told = answers["stragglers"].records()
    shown = dict(list(runs.items())[:RUNS])
    parts.append(
        f'<h2 class="lead">{sentence(_lead(shown, _with_gpus(answers)))}</h2>' if shown else ""
    )
    parts.append(f'<p class="quiet job">{sentence(job_text(answers, [*shown]))}</p>')
    parts.append(tiles_markup(answers, shown))
    longest = max((_mean(rows)["step_ns"] for rows in shown.values()), default=0)
    sides = [
        "".join(
            _of_run(rows, [row for row in told if row["run"] == run], longest, len(shown), sections)
        )
        + first_cards(answers, run, sections)
        for run, rows in shown.items()
    ]
    if len(sides) > 1:
        sides = ['<div class="sides">', *(f"<div>{side}</div>" for side in sides), "</div>"]
    parts += sides
    if len(runs) > len(shown):
        parts.append(f'<p class="quiet">The first {len(shown)} of {len(runs)} runs.</p>')
    return "\n".join([*parts, questions, "</section>"])


def _without_steps(sections: set[str]) -> str:
    """Say why there is no step; of ranks that are told by summaries alone, where these are."""
    where = [f"for {what} look at {name}" for name, what in SUMMARISED.items() if name in sections]
    if not where:
        return missing(no_rows(load_library().find("step_accounting")))
    told = "; ".join(("The ranks are told by summaries, without events", *where))
    return f'<h2 class="lead">{linked(told, sections)}</h2>'


def _with_gpus(answers: Answers) -> set[str]:
    """Name the runs with activity of a device."""
    return {row["run"] for row in answers["rank_health"].records() if row["gpu_op_count"]}


def _lead(runs: Mapping[str, list[Row]], with_gpus: set[str]) -> str:
    """Say in a sentence how long a step takes, and how much of it computes."""
    several = len(runs) > 1
    told = []
    for run, rows in runs.items():
        whole = _mean(rows)
        step = whole["step_ns"]
        what = f"{'A step' if _has_steps(rows) else 'The capture'} takes"
        what = f"{cut_middle(run, 40)}:" if several else what
        share = "; no GPU is in the traces"
        if run in with_gpus:
            share = f"; GPUs compute {whole['compute_ns'] / step:.0%} of it" if step else ""
        told.append(f"{what} {duration_text(step)}{'' if several else share}")
    if not several:
        return told[0].replace("%", " %")
    what = "A step" if all(map(_has_steps, runs.values())) else "A step, or the capture,"
    return f"{what} of {', of '.join(told)}"


def _has_steps(rows: list[Row]) -> bool:
    return any(row["step"] is not None for row in rows)


def _of_run(
    rows: list[Row], told: list[Row], longest: float, runs: int, sections: set[str]
) -> Iterator[str]:
    whole = _mean(rows)
    run = html.escape(printable(rows[0]["run"]))
    what = "a step" if _has_steps(rows) else "the capture"
    yield f"<h3>Where {what} {f'of {run} ' if runs > 1 else ''}goes</h3>"
    room = LETTERS // min(runs, 2)
    yield f'<div data-run="{run}">{_bar(whole, longest, room)}{_key(whole)}</div>'
    unmatched = sum(row["exposed_unmatched_ns"] or 0 for row in rows) / len(rows)
    if whole["step_ns"] and unmatched / whole["step_ns"] >= 1 / 1000:
        yield (
            f'<p class="quiet">Of the transfer, {duration_text(unmatched)} a step are in collectives '
            "without a match: it is not known whether they wait.</p>"
        )
    yield from _sentences(told, sections)
    if runs == 1:
        yield _ranks(rows, told)


def _mean(rows: Iterable[Row]) -> dict[str, float]:
    """Average the steps; the parts still add up to the step."""
    listed = list(rows)
    return {
        name: sum(row[name] for row in listed) / len(listed) for name in ("step_ns", *STEP_PARTS)
    }


def shares(means: Mapping[str, float]) -> dict[str, float]:
    """Round the parts of a step to tenths of a percent that add up to 100; what is below half of one is none."""
    step = means["step_ns"]
    if not step:
        return {}
    tenths = {name: 1000 * means[name] / step for name in STEP_PARTS}
    rounded = {name: math.floor(value) for name, value in tenths.items()}
    left = 1000 - sum(rounded.values())
    large = (name for name in tenths if tenths[name] >= 0.5)
    for name in sorted(large, key=lambda name: rounded[name] - tenths[name])[:left]:
        rounded[name] += 1
    return {name: value / 10 for name, value in rounded.items()}


def _bar(means: Mapping[str, float], longest: float, room: int = 0) -> str:
    """Write the parts side by side, as wide as they take of the longest step.

    All of them are there, so that the page can show another choice of ranks and steps.
    """
    pieces = []
    for name, (words, colour) in STEP_PARTS.items():
        part = means[name] / longest if longest else 0
        text = f"{words} {duration_text(means[name])}"
        ink = "#fff" if colour in DARK else ON_COLOUR
        pieces.append(
            f'<span data-part="{name}" style="width:{100 * part:.3f}%;background:{colour};color:{ink}" '
            f'title="{words}: {duration_text(means[name])}">{text if len(text) < part * room else ""}</span>'
        )
    told = "; ".join(
        f"{words} {duration_text(means[name])}"
        for name, (words, _) in STEP_PARTS.items()
        if means[name]
    )
    return f'<div class="step" role="img" aria-label="{html.escape(told)}">{"".join(pieces)}</div>'


def _share_text(share: float | None) -> str:
    return f"{share:.1f} %" if share else "below 0.1 %"


def _key(means: Mapping[str, float]) -> str:
    rounded = shares(means)
    items = "".join(
        f'<li data-part="{name}"{"" if means[name] else " hidden"}>'
        f'<i style="background:{colour}"></i>{words} '
        f"<span>{duration_text(means[name])}, {_share_text(rounded.get(name))}</span></li>"
        for name, (words, colour) in STEP_PARTS.items()
    )
    return (
        f'<ul class="key">{items}</ul><p class="quiet of">Mean of all ranks and steps. Transfer, wait '
        "for other ranks and copies: while nothing computes.</p>"
    )


def _sentences(told: Sequence[Row], sections: set[str]) -> Iterator[str]:
    """Say who is late, or that nobody is."""
    late = [row for row in told if row["is_straggler"]]
    look = '<a href="#stragglers">Look closer</a>' if "stragglers" in sections else ""
    for row in late[:2]:
        yield f'<p class="say late">{linked(row["message"], sections)} {look}</p>'
    if len(late) > 2:
        yield f'<p class="quiet">{len(late) - 2} more ranks are late. {look}</p>'
    judged = [row for row in told if row["is_straggler"] is not None]
    if judged and not late:
        text = f"No rank holds up the others by habit: {len(judged):,} ranks compared."
        most = max(judged, key=lambda row: (row["reason"] is not None, row["excess_ns"]))
        if most["reason"] is not None:
            text += f" Rank {most['rank']} cost most: {most['reason']}."
        yield f'<p class="say">{sentence(text)} {look}</p>'
    elif told and not late:
        reason = html.escape(printable(told[0]["reason"] or "no collective is matched"))
        yield f'<p class="quiet">Whether a rank is late cannot be said: {reason}.</p>'


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
    rest = (
        f'<p class="quiet">The {len(shown)} of {len(means):,} ranks that are late or whose waits differ '
        'most from the middle. <a href="#step_accounting">All ranks</a></p>'
        if len(means) > len(shown)
        else ""
    )
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
