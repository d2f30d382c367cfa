"""Renders the first screen: the job, the parts of a step, stragglers, and the step of each rank."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup

from hta_sql.charts.drawing.palette import DARK, ON_COLOR
from hta_sql.report.advice import first_cards
from hta_sql.report.first_screen import (
    HOST_PARTS,
    NEEDED,
    RECORDED,
    STEP_PARTS,
    SUMMARIZED,
    FirstScreen,
    accounted,
    analysis_of,
    is_on_host,
)
from hta_sql.report.headings import sentence
from hta_sql.report.links import linked
from hta_sql.report.reasons import no_rows
from hta_sql.report.rendering import missing, render
from hta_sql.report.serving import Serving, serving_of
from hta_sql.report.tiles import TILES, job_text, tiles_markup
from hta_sql.text import cut_middle, duration_text, printable

RUNS = 6
"""Maximum number of runs with a bar on the first screen."""

RANKS = 8
"""Maximum number of ranks with a bar; stragglers and ranks with unusual waits come first."""

LETTERS = 140
"""Number of characters that fit in the bar of a step."""

UNRECORDED = tuple(name for name in STEP_PARTS if name.startswith("unrecorded_"))
"""Parts of a step that no share counts: the device ran work that is not in the trace."""

LATE = 2
"""Maximum number of stragglers with a sentence."""

DEVICE_NOTE = (
    "Transfers, waits for other ranks and copies count only if not overlapped by computation."
)
HOST_NOTE = "Parts are those of the thread that runs the steps."
"""What the parts of a step mean: for runs with device activity, and without."""

NOTHING = Markup()

Row = dict[str, Any]

SHOWN_HANGS = 2
"""Maximum number of hangs with a sentence; the section lists all of them."""


def overview_markup(first: FirstScreen, sections: set[str], questions: Markup = NOTHING) -> Markup:
    """Render the first screen: a single run, or several runs side by side.

    Args:
        first: Results of the first screen.
        sections: Analyses with a section on the page, to which the first screen can link.
        questions: Links to the answers on the page.
    """
    if not NEEDED.isdisjoint(first.failures):
        blank = dict.fromkeys(("hangs", "without_steps", "lead", "capture", "job", "tiles"), "")
        failures = list(first.failures.values())
        return render(
            "overview", failures=failures, **blank, sides=[], run_count=0, questions=questions
        )
    steps = accounted(first)
    runs = {run: list(rows) for run, rows in groupby(steps, key=lambda row: row["run"])}
    shown = dict(list(runs.items())[:RUNS])
    judged = first.stragglers.records()
    longest = max((_mean(rows)["step_ns"] for rows in shown.values()), default=0)
    sides = [
        _side(rows, [row for row in judged if row["run"] == run], longest, len(shown), sections)
        | {"cards": first_cards(first, run, sections)}
        for run, rows in shown.items()
    ]
    served = {run: serving for run in shown if (serving := serving_of(first, run))}
    for side in sides:
        side["served"] = _served(served.get(side["run"]), is_alone=len(shown) == 1)
    lead = _lead(shown, _with_gpus(first)) if shown else ""
    alone = served.get(next(iter(shown), "")) if len(shown) == 1 else None
    hangs = hangs_of(first)
    return render(
        "overview",
        failures=list(first.failures.values()),
        hangs=hangs,
        without_steps="" if runs or hangs else _without_steps(first, sections),
        lead=alone.lead if alone else lead,
        capture=lead if alone else "",
        job=job_text(first, [*shown]),
        tiles=render("tiles", tiles=alone.tiles[:TILES]) if alone else tiles_markup(first, shown),
        sides=sides,
        run_count=len(runs),
        questions=questions,
    )


def _without_steps(first: FirstScreen, sections: set[str]) -> Markup:
    """Explain why steps are missing, and link to sections about what the files contain instead."""
    where = [f"for {what}, look at {name}" for name, what in SUMMARIZED.items() if name in sections]
    if where:
        text = "; ".join(("The ranks have summaries instead of events", *where))
        return render("lead", text=linked(text, sections))
    recorded = [f"{what}: look at {name}" for name, what in RECORDED.items() if name in sections]
    if recorded:
        text = f"These files have no profiler steps, but {'; '.join(recorded)}"
        return render("lead", text=linked(text, sections))
    return missing(no_rows(analysis_of(first.step_accounting)))


def _served(serving: Serving | None, *, is_alone: bool) -> list[str]:
    """Return the sentences about a serving run; a single run's lead is at the top instead."""
    if serving is None:
        return []
    of_rank = f" These numbers are for rank {serving.rank}." if serving.rank is not None else ""
    lead = "" if is_alone else f"{serving.lead}. "
    return [f"{lead}{serving.bound}{of_rank}", *serving.others]


def _with_gpus(first: FirstScreen) -> set[str]:
    """Return the runs with device activity."""
    return {row["run"] for row in first.rank_health.records() if row["gpu_op_count"]}


def _lead(runs: Mapping[str, list[Row]], with_gpus: set[str]) -> str:
    """Return a sentence about the duration of a step and its share of compute."""
    several = len(runs) > 1
    durations = []
    for run, rows in runs.items():
        whole = _mean(rows)
        step = whole["step_ns"]
        what = f"{'A step' if _has_steps(rows) else 'The capture'} takes"
        what = f"{cut_middle(run, 40)}:" if several else what
        share = _compute_share(whole) if run in with_gpus else _host_share(whole)
        durations.append(f"{what} {duration_text(step)}{'' if several else share}")
    if not several:
        return durations[0].replace("%", " %")
    what = "A step" if all(map(_has_steps, runs.values())) else "A step, or the capture,"
    return f"{what} of {', of '.join(durations)}"


def _compute_share(means: Mapping[str, float]) -> str:
    """Return the clause about compute, which names the recorded time if it is not the whole."""
    recorded = _recorded(means)
    if not recorded:
        return ""
    part = means["compute_ns"] / recorded
    share = f"GPUs compute for {'less than 1%' if 0 < part < 0.005 else f'{part:.0%}'} of"
    if means["step_ns"] - recorded < means["step_ns"] / 100:
        return f"; {share} it"
    return f", {duration_text(recorded)} of it recorded; {share} the recorded time"


def _host_share(means: Mapping[str, float]) -> str:
    """Return the clause about the largest part of the host's step, if it is known."""
    name = max(HOST_PARTS, key=lambda name: means[name])
    if not means[name]:
        return "; the traces have no GPU activity"
    words = HOST_PARTS[name][0]
    return f", {means[name] / means['step_ns']:.0%} of it {words}; the traces have no GPU activity"


def _recorded(means: Mapping[str, float]) -> float:
    """Return the recorded time of a step, the denominator of shares [ns]."""
    return means["step_ns"] - sum(means[name] for name in UNRECORDED)


def _has_steps(rows: list[Row]) -> bool:
    return any(row["step"] is not None for row in rows)


def _side(
    rows: list[Row], judged: list[Row], longest: float, runs: int, sections: set[str]
) -> dict[str, Any]:
    """Return the content for a run: a bar for its mean step, sentences, and a bar per rank."""
    whole = _mean(rows)
    unmatched = whole["exposed_unmatched_ns"]
    is_unmatched = whole["step_ns"] and unmatched / whole["step_ns"] >= 1 / 1000
    ranks, rank_count = _ranks(rows, judged) if runs == 1 else ([], 0)
    known = {name for name in STEP_PARTS if any(row[name] is not None for row in rows)}
    return {
        "run": rows[0]["run"],
        "what": "a step" if _has_steps(rows) else "the capture",
        "bar": _bar(whole, longest, known, LETTERS // min(runs, 2)),
        "key": _key(whole, known),
        "note": HOST_NOTE if all(map(is_on_host, rows)) else DEVICE_NOTE,
        "is_partial": any(whole[name] for name in UNRECORDED),
        "unmatched_ns": unmatched if is_unmatched else None,
        "ranks": ranks,
        "rank_count": rank_count,
        **_verdict(judged, sections),
    }


def _mean(rows: Iterable[Row]) -> dict[str, float]:
    """Return the mean of the steps; its parts still add up to the step."""
    listed = list(rows)
    return {
        # NULL means undecided; that time is part of idle_before_ns.
        name: sum(row[name] or 0 for row in listed) / len(listed)
        for name in ("step_ns", "wait_ns", *STEP_PARTS)
    }


def shares(means: Mapping[str, float]) -> dict[str, float]:
    """Return the parts of the recorded time, rounded to 0.1 % so that they add up to 100 %.

    Parts below 0.05 % become 0. Unrecorded parts have no share.
    """
    recorded = _recorded(means)
    if not recorded:
        return {}
    names = [name for name in STEP_PARTS if name not in UNRECORDED]
    tenths = {name: 1000 * means[name] / recorded for name in names}
    rounded = {name: math.floor(value) for name, value in tenths.items()}
    left = 1000 - sum(rounded.values())
    large = (name for name in tenths if tenths[name] >= 0.5)
    for name in sorted(large, key=lambda name: rounded[name] - tenths[name])[:left]:
        rounded[name] += 1
    return {name: value / 10 for name, value in rounded.items()}


def _bar(
    means: Mapping[str, float], longest: float, known: Container[str], room: int = 0
) -> list[dict[str, Any]]:
    """Return the parts of a bar, with widths relative to the longest step.

    All known parts are included, so that the page can show a different selection of ranks and steps.
    """
    pieces = []
    for name, (words, color) in STEP_PARTS.items():
        if name not in known:
            continue
        part = means[name] / longest if longest else 0
        text = f"{words} {duration_text(means[name])}"
        piece = {"name": name, "words": words, "color": color, "ns": means[name]}
        piece |= {"width": f"{100 * part:.3f}", "ink": "#fff" if color in DARK else ON_COLOR}
        pieces.append(piece | {"text": text if len(text) < part * room else ""})
    return pieces


def _share_text(share: float | None) -> str:
    return f"{share:.1f} %" if share else "below 0.1 %"


def _key(means: Mapping[str, float], known: Container[str]) -> list[dict[str, Any]]:
    """Return the legend: the parts with their times and shares."""
    rounded = shares(means)
    return [
        {"name": name, "words": words, "color": color, "ns": means[name]}
        | {"share": "" if name in UNRECORDED else _share_text(rounded.get(name))}
        for name, (words, color) in STEP_PARTS.items()
        if name in known
    ]


def _verdict(judged: Sequence[Row], sections: set[str]) -> dict[str, Any]:
    """Return the verdict on stragglers: their ranks, none found, or why the verdict is unknown."""
    late = [row for row in judged if row["is_straggler"]]
    compared = [row for row in judged if row["is_straggler"] is not None]
    # Suspected and intermittent stragglers, slow links and stages: largest cost first, each
    # sentence once.
    others = sorted(
        (row for row in judged if row["message"] and not row["is_straggler"]),
        key=lambda row: -(row["cost_ns"] or 0),
    )
    text = unknown = ""
    if compared and not late and not others:
        text = f"No straggler: {len(compared):,} ranks compared."
        # Missing ranks come first, because one of them may be the straggler.
        missing = {row["verdict_reason"] for row in compared if row["verdict"] == "none"} - {None}
        text = " ".join((*(f"{reason}." for reason in sorted(missing)), text))
    elif judged and not compared:
        unknown = printable(judged[0]["verdict_reason"] or "no collective is matched")
    messages = list(dict.fromkeys(map(_verdict_text, (*late, *others))))
    return {
        "late": [linked(message, sections) for message in messages[:LATE]],
        "more_late": max(0, len(late) - LATE),
        "nobody_late": text,
        "unknown": unknown,
        "has_stragglers": "stragglers" in sections,
    }


def _verdict_text(row: Row) -> str:
    """Return the message about a rank, with the reason if it is no straggler for certain."""
    if row["verdict"] == "suspected" and row["verdict_reason"]:
        return f"{row['message']} Not certain: {row['verdict_reason']}."
    return str(row["message"])


def _ranks(
    rows: list[Row], judged: list[Row]
) -> tuple[list[tuple[int, list[dict[str, Any]], dict[str, Any]]], int]:
    """Return a bar and a remark for each shown rank, and the total number of ranks."""
    late = {row["rank"]: row["cause"] for row in judged if row["is_straggler"]}
    by_rank: dict[int, list[Row]] = {}
    for row in rows:
        by_rank.setdefault(row["rank"], []).append(row)
    means = {rank: _mean(steps) for rank, steps in by_rank.items()}
    if len(means) == 1:
        return [], 1
    longest = max(mean["step_ns"] for mean in means.values())
    return [
        (
            rank,
            _bar(means[rank], longest, {name for name in STEP_PARTS if means[rank][name]}),
            {"cause": late.get(rank), "wait_ns": means[rank]["wait_ns"]},
        )
        for rank in _chosen(means, late)
    ], len(means)


def _chosen(means: Mapping[int, Mapping[str, float]], late: Mapping[int, str]) -> list[int]:
    middle = sorted(mean["wait_ns"] for mean in means.values())[len(means) // 2]
    unusual = sorted(
        means,
        key=lambda rank: (rank not in late, -abs(means[rank]["wait_ns"] - middle), rank),
    )
    return sorted(unusual[:RANKS])


def hangs_of(first: FirstScreen) -> dict[str, Any]:
    """Return the title of a page about a hang, its further sentences, and the number of others.

    The sentences are those of the analysis ``hang``, with the cause first; the title is the first
    sentence of the first hang. All are empty if nothing hangs.
    """
    rows = first.hang.records()
    if not rows:
        return {}
    several = len({row["run"] for row in rows}) > 1
    texts = [f"{row['run']}: {row['message']}" if several else row["message"] for row in rows]
    title, _, rest = texts[0].partition(". ")
    others = [rest, *texts[1:SHOWN_HANGS]] if rest else texts[1:SHOWN_HANGS]
    return {
        "title": sentence(title),
        "others": [sentence(text) for text in others],
        "more": len(rows) - SHOWN_HANGS,
    }
