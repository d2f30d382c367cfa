"""The first screen of a serving run: time per token, tokens per second, and the bottleneck."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hta_sql.report.first_screen import FirstScreen
from hta_sql.results.serving_phases import (
    bound_sentence,
    pace_sentence,
    token_rates,
    work_sentence,
)
from hta_sql.text import duration_text, printable

PHASES = 4
"""Maximum number of phases with a sentence."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Serving:
    """Sentences and figures of a serving run.

    Attributes:
        lead: Pace and rates of the most important phase: decode, if there is any.
        bound: The largest share of that phase's time.
        others: One sentence about each of the other phases.
        tiles: (label, value) of the key figures of the most important phase.
        rank: The rank that the sentences describe; None if there is only one.
    """

    lead: str
    bound: str
    others: list[str]
    tiles: list[tuple[str, str]]
    rank: int | None


def serving_of(first: FirstScreen, run: str) -> Serving | None:
    """Return the sentences about a run, or None if it is not a serving run.

    A serving run has annotated iterations; without annotations, it has graph replays but no steps.
    """
    of_run = [row for row in first.serving.records() if row["run"] == run]
    if not of_run:
        return None
    rank = min(row["rank"] for row in of_run)
    phases = [row for row in of_run if row["rank"] == rank and row["iteration_p50_ns"] is not None]
    has_steps = any(
        row["step"] is not None for row in first.step_accounting.records() if row["run"] == run
    )
    # A training job may replay graphs, too, but it has steps, which are shown instead.
    if not phases or (has_steps and all(row["phase"] is None for row in phases)):
        return None
    kinds = [
        row for row in first.serving_kinds.records() if (row["run"], row["rank"]) == (run, rank)
    ]
    ordered = sorted(phases, key=lambda row: row["phase"] != "decode")
    main, *others = ordered
    unnamed = (
        ""
        if main["phase"]
        else " No annotation names the iterations and their phase: they are calls of the engine or periods of graph replays."
    )
    return Serving(
        printable(pace_sentence(main)),
        printable(bound_sentence(main, _of_phase(kinds, main)) + unnamed),
        [
            printable(
                f"{pace_sentence(row)}{work_sentence(row)}. {bound_sentence(row, _of_phase(kinds, row))}"
            )
            for row in others[: PHASES - 1]
        ],
        list(_tiles(main)),
        rank if len({row["rank"] for row in of_run}) > 1 else None,
    )


def _of_phase(kinds: list[Row], phase: Row) -> list[Row]:
    return [kind for kind in kinds if kind["phase"] == phase["phase"]]


def _tiles(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (label, value) of the key figures, most important first."""
    what = "time per output token" if row["phase"] == "decode" else "time per iteration"
    if row["iteration_count"] > 1:
        what += f", p99 {duration_text(row['iteration_p99_ns'])}"
    yield what, duration_text(row["iteration_p50_ns"])
    for rate, unit in reversed([*token_rates(dict(row))]):
        yield unit, rate
    yield "GPU busy in iterations", f"{row['busy_pct']:.1f} %"
    if row["gap_p50_ns"] is not None:
        yield "time between iterations", duration_text(row["gap_p50_ns"])
    if row["mean_request_count"] is not None:
        yield "requests per iteration", f"{row['mean_request_count']:,.1f}"
    yield "iterations that replay graphs", f"{row['graph_pct']:.0f} %"
