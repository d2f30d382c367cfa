"""The headline of a comparison: how much a step changed, how certain that is, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hta_sql.text import counted, first_of, rank_spans, time_text

PARTS = {
    "compute": "computation",
    "transfer": "exposed transfer",
    "unmatched": "exposed communication (transfer or waiting)",
    "wait": "waiting for other ranks",
    "memory": "exposed copies",
    "idle": "device idle",
    "unrecorded": "device busy with unrecorded work",
    "host": "host",
    "other": "device busy outside of steps",
    "lag": "host step minus device step",
}
"""Names of the parts of a step, for people."""

_EFFECTS = ("wait", "lag", "other", "unrecorded", "memory")
"""Parts that are usually effects of other changes; only copies that take longer are causes."""
_WORK = ("compute", "transfer", "unmatched", "memory", "host")
_OF_THE_DEVICE = ("device queue", "unknown")
"""Causes of idle time that are not host activity."""
_SOME_STEPS = ("slower in some steps", "faster in some steps")
_NAMED = 3
"""Maximum number of rows in one sentence."""
_NEW_SHARE = 0.1
"""Minimum share of the step's difference for new or removed operators to come first."""

BOOKKEEPING = ("lag", "other")
"""Parts that only move time between steps, often with opposite signs: they are no headline."""

_FEW_STEPS = 3
"""Number of steps on a side up to which a noise above the step time is not stated as a time."""

Row = dict[str, Any]


def headline(
    runs: tuple[str, str],
    rows: Sequence[Row],
    causes: Sequence[Row],
    operators: Sequence[Row],
    unit: str = "step",
) -> str:
    """Return the headline: the change of a step, its significance, and its main cause.

    Args:
        runs: Names of control and test.
        rows: Rows of the analysis ``comparison``: the step, its parts, and the rows of each part,
            largest difference first.
        causes: Rows of ``lib.compared_causes``, largest first.
        operators: Rows of ``trace_diff`` whose counts differ, if the steps are otherwise equal.
        unit: What is compared: ``step``, or ``capture`` if neither run has steps.
    """
    (step,), parts, details = (
        [row for row in rows if row["level"] == level] for level in ("step", "part", "row")
    )
    if step["diff_ns"] == 0 and not any(row["is_change"] for row in details):
        return _equal_text(step, operators, unit)
    slow = zip(runs, (step["control_slow_steps"], step["test_slow_steps"]), strict=True)
    sentences = [
        f"{_difference_text(step, unit)}{_trust(step, unit)}.",
        *(f"{run}: {steps}." for run, steps in slow if steps),
        _lead(step, parts, details, causes, unit),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _equal_text(step: Row, operators: Sequence[Row], unit: str) -> str:
    time = time_text(step["control_ns"])
    if not operators:
        return f"Nothing changed: a {unit} takes {time} on both sides."
    counts = [
        f"{row['name']} {row['control_count'] or 0:,} ▸ {row['test_count'] or 0:,}"
        for row in operators
    ]
    return f"A {unit} takes {time} on both sides. Recorded more or less often: {_listed(counts)}."


def _lead(
    step: Row, parts: Sequence[Row], rows: Sequence[Row], causes: Sequence[Row], unit: str
) -> str:
    """Return the main cause of the change: new operators, a cause on a rank, a part, or a row."""
    if step["verdict"] == "unknown" and step["noise_ns"] is not None:
        certain = [row for row in rows if row["is_change"] and row["part"] not in _EFFECTS]
        if certain:
            return f"Significant changes: {_listed([_row_text(row) for row in certain])}."
    same_way = [
        row
        for row in rows
        if row["diff_ns"] * step["diff_ns"] > 0 and row["part"] not in BOOKKEEPING
    ]
    # Unrecorded time follows from what the recorder lost.
    causes = [cause for cause in causes if cause["cause"] != "unrecorded"]
    cause = next(iter(causes), None)
    is_exposed = not any(cause["part"] == "transfer" for cause in causes)
    if causes and is_exposed:
        same_way = [row for row in same_way if row["part"] != "transfer"]
    changed = [row for row in same_way if row["is_change"]]
    first = next((row for row in changed if row["part"] not in _EFFECTS), None)
    largest = max((abs(row["diff_ns"]) for row in (first, cause) if row), default=0)
    is_one = 2 * largest >= abs(step["diff_ns"])
    if new := _new_text(step, changed, largest if is_one else 0):
        return new
    part = None if is_one else _main_part(step, parts, changed)
    text = _part_text(part, changed) if part else _one_text(step, same_way, first, cause, unit)
    subject = part or (None if cause else first)
    if is_exposed and subject and subject["part"] == "transfer":
        less = "less" if subject["diff_ns"] > 0 else "more"
        text += f" Transfers take about as long, but compute overlaps {less} of them."
    return text


def _one_text(
    step: Row, same_way: Sequence[Row], first: Row | None, cause: Row | None, unit: str
) -> str:
    """Return the sentence about the cause or row that accounts for most of the difference."""
    changed = [row for row in same_way if row["is_change"]]
    # Host activity is more specific than idle time of the device.
    least = (0.5 if first["part"] == "idle" else 1) * abs(first["diff_ns"]) if first else 0
    if cause and abs(cause["diff_ns"]) >= least:
        if step["is_change"] or step["verdict"] in _SOME_STEPS:
            return f"Cause{_cause_text(cause, unit)}."
        return f"Largest difference, not statistically significant{_cause_text(cause, unit)}."
    if first or changed:
        return _change_text(first or changed[0])
    if not step["diff_ns"]:
        return ""
    if not same_way or step["verdict"] in ("unchanged", "within noise"):
        return "No part of the step changed beyond noise in that direction."
    return f"Most of it: {_row_text(same_way[0])}, not statistically significant."


def _change_text(row: Row) -> str:
    """Return the sentence about the largest change; a wait is an effect of an unknown cause."""
    if row["part"] == "wait":
        longer = "longer" if row["diff_ns"] > 0 else "shorter"
        time = time_text(abs(row["diff_ns"]))
        return f"Ranks wait {time} {longer} for each other in {row['subject']}; no cause was found."
    beyond = "" if row["noise_ns"] is None else " beyond noise"
    return f"Largest change{beyond}: {_row_text(row)}."


def _new_text(step: Row, changed: Sequence[Row], least: float) -> str:
    """Return the sentence about added or removed operators, if they are relevant."""
    verdict = "added" if step["diff_ns"] > 0 else "removed"
    new = [row for row in changed if row["verdict"] == verdict and row["part"] in _WORK]
    total = sum(abs(row["diff_ns"]) for row in new)
    if not new or total < max(_NEW_SHARE * abs(step["diff_ns"]), least):
        return ""
    others = [row for row in changed if row not in new and row["part"] not in _EFFECTS]
    rest = f" Largest other change: {_row_text(others[0])}." if others else ""
    return f"Operators {verdict}: {_listed([_row_text(row) for row in new])}.{rest}"


def _main_part(step: Row, parts: Sequence[Row], changed: Sequence[Row]) -> Row | None:
    """Return the part with most of the difference, if several of its rows changed."""
    for part in parts:
        is_most = 2 * part["diff_ns"] * step["diff_ns"] >= step["diff_ns"] ** 2
        rows = [row for row in changed if row["part"] == part["part"]]
        if part["part"] in _WORK and part["is_change"] and is_most and len(rows) > 1:
            return part
    return None


def _part_text(part: Row, changed: Sequence[Row]) -> str:
    """Return the sentence about the part with most of the difference."""
    rows = [row for row in changed if row["part"] == part["part"]]
    names = _listed([f"{row['subject']} {signed_time(row['diff_ns'])}" for row in rows])
    return (
        f"Most of it is {PARTS[part['part']]}, {signed_time(part['diff_ns'])} "
        f"in {len(rows)} operators: {names}."
    )


def _listed(texts: Sequence[str]) -> str:
    return first_of(texts, _NAMED)


def _row_text(row: Row) -> str:
    return f"{row['subject']} ({row['part']}), {signed_time(row['diff_ns'])}"


def _difference_text(step: Row, unit: str) -> str:
    if step["diff_ns"] == 0:
        return f"A {unit} takes {time_text(step['control_ns'])} on both sides"
    longer = "longer" if step["diff_ns"] > 0 else "less"
    average = " on average" if max(_step_counts(step)) > 1 else ""
    median = ""
    if min(_step_counts(step)) > 2 and step["control_median_ns"]:
        share = 100 * (step["test_median_ns"] / step["control_median_ns"] - 1)
        median = f"; median {share:+.1f} %"
    return (
        f"A {unit} takes {time_text(abs(step['diff_ns']))} {longer}{average} "
        f"({time_text(step['control_ns'])} ▸ {time_text(step['test_ns'])}, "
        f"{step['diff_pct'] or 0:+.1f} %{median})"
    )


def _cause_text(cause: Row, unit: str) -> str:
    """Format a cause: its ranks (unless all), its description, and its time."""
    ranks = cause["on_ranks"] or ()
    where = f" on rank{'s' if len(ranks) > 1 else ''} {rank_spans(ranks)}" if ranks else ""
    longer = "longer" if cause["diff_ns"] > 0 else "less"
    time = f"{time_text(abs(cause['diff_ns']))} {longer} a {unit}"
    late = "; the other ranks wait for it" if cause["is_straggler"] and len(ranks) == 1 else ""
    name = cause["name"] or "no event"
    if cause["part"] == "idle":
        doing = "" if cause["cause"] in _OF_THE_DEVICE else f" while its host is in {name}"
        return f"{where}: the device idles {time}{doing} ({cause['cause']}){late}"
    return f"{where}: {name} ({cause['part']}) takes {time}{late}"


def _trust(step: Row, unit: str) -> str:
    """Return the phrase about the significance of the step's difference."""
    noise = step["noise_ns"]
    if noise is None and unit == "capture":
        return (
            "; significance unknown: without profiler steps, nothing shows how much the work varies"
        )
    if noise is None:
        return "; significance unknown: a side has only one step"
    within = f"(± {time_text(noise)})"
    ending = f", {step['verdict']} {within}"
    if step["is_change"] and abs(step["diff_ns"]) <= noise:
        sides = sorted((step["control_ns"], step["test_ns"]))
        faster = "slower" if step["diff_ns"] > 0 else "faster"
        few = min(_step_counts(step))
        ending = (
            f": {sides[1] / sides[0]:.1f} x {faster}; {few} steps per side are too few for a test"
        )
    elif step["is_change"]:
        ending = f", beyond noise {within}"
    elif step["verdict"] in _SOME_STEPS:
        ending = f", {step['verdict']}"
    elif has_too_few_steps(noise, step):
        steps = counted(min(_step_counts(step)), "step")
        ending = f"; significance unknown: {steps} per side are too few to tell how much steps vary"
    elif noise > step["control_ns"]:
        ending = "; not significant: steps of one run vary by more than this"
    elif step["verdict"] == "unknown":
        ending = f"; significance unknown {within}"
    return ending


def has_too_few_steps(noise_ns: float | None, step: Row) -> bool:
    """Return whether a noise only shows that it was estimated from too few steps."""
    return (
        noise_ns is not None
        and noise_ns > step["control_ns"]
        and min(_step_counts(step)) <= _FEW_STEPS
    )


def _step_counts(step: Row) -> tuple[int, int]:
    return step["control_step_count"], step["test_step_count"]


def signed_time(ns: float) -> str:
    """Format a signed time: ``+1.250 ms``."""
    return f"{'-' if ns < 0 else '+'}{time_text(abs(ns))}"
