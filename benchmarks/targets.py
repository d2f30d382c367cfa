"""Define the cost targets, and check whether they are met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.rounds import Outcome


@dataclass(frozen=True)
class Target:
    """One figure of one job and its upper bound."""

    job: str
    what: str
    limit: float
    figure: Callable[[Outcome], float | None]


def ratio(figure: str, other: str) -> Callable[[Outcome], float | None]:
    """Return a function that computes the ratio of two figures within rounds."""
    return lambda outcome: outcome.ratio(figure, other)


def _first_answer_ratio(outcome: Outcome) -> float | None:
    """Return our time from opening to the first answer relative to HTA's load, without imports."""
    parts = [outcome.median(f"ours.{lap}.wall_s") for lap in ("open", "first answer")]
    load = outcome.median("hta.load.wall_s")
    known = [part for part in parts if part is not None]
    return sum(known) / load if load and len(known) == len(parts) else None


BIG, RANKS = "xdit_sd35_mi300x", "nanogpt_8rank_h100"
OURS, LOAD = "ours.ingest", "hta.load"

TARGETS = (
    Target(
        BIG, "ingest CPU / gunzip + orjson.loads CPU", 1.7,
        ratio(f"{OURS}.cpu_s", "orjson.total.cpu_s"),
    ),
    Target(BIG, "ingest CPU / HTA load CPU", 0.35, ratio(f"{OURS}.cpu_s", f"{LOAD}.cpu_s")),
    Target(BIG, "ingest wall / HTA load wall", 0.3, ratio(f"{OURS}.wall_s", f"{LOAD}.wall_s")),
    Target(
        BIG, "ingest peak memory [MB]", 450,
        lambda outcome: outcome.median("ours.ingest process.peak_mb"),
    ),
    Target(BIG, "re-open to first answer / HTA load wall", 1 / 20, _first_answer_ratio),
    Target(RANKS, "ingest wall / HTA load wall", 0.4, ratio(f"{OURS}.wall_s", f"{LOAD}.wall_s")),
)  # fmt: skip


def check(outcomes: list[Outcome]) -> list[tuple[str, str, float | None, float, str]]:
    """Return (job, description, figure, limit, verdict) for each target whose job was measured."""
    by_name = {outcome.job.name: outcome for outcome in outcomes}
    checked = []
    for target in TARGETS:
        if target.job not in by_name:
            continue
        value = target.figure(by_name[target.job])
        verdict = "not measured" if value is None else "PASS" if value <= target.limit else "FAIL"
        checked.append((target.job, target.what, value, target.limit, verdict))
    return checked
