"""``hta-sql advice``: recommendations for a job, largest saving first."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hta_sql.cli.messages import note
from hta_sql.cli.options import memory_limit_option, roles_option, scope_options, steps_option
from hta_sql.cli.selection import label, store_argument
from hta_sql.cli.verifying import verify_option
from hta_sql.library.sql_files import query_sql

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore


ACROSS_RANKS = ("late_rank", "slow_link", "slow_stage")
"""Rules whose evidence compares ranks."""

LARGEST_LOSS = "largest_loss"
"""Rule that names the largest loss if no recommendation saves 3 %."""


@click.command(short_help="List what to change, what it saves at most, and how to check it.")
@store_argument(metavar="STORE[:RUN]|TRACES")
@scope_options
@steps_option
@roles_option
@memory_limit_option
@verify_option
@click.option(
    "--min-pct",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Minimum saving relative to the step time, in percent.",
)
def advice(
    *,
    store: Path,
    runs: list[str] | None,
    ranks: list[int] | None,
    steps: list[int] | None,
    roles: list[str] | None,
    memory_limit: str | None,
    min_pct: float,
) -> None:
    """List what to change in the job in a STORE: one recommendation per rule, largest saving first.

    A saving is a ceiling, not a promise: it is the step time that the rule is about. Savings of two
    rules may overlap; the first line counts their time once. If no rule saves 3 % of the step time,
    the largest loss is named, with the analysis that shows it. For a table with queries that show
    the evidence, use: hta-sql run STORE advice.
    """
    from hta_sql.cli.reading import open_to_query  # noqa: PLC0415 - lazy, to start faster

    with open_to_query(store, memory_limit=memory_limit) as opened:
        scope = {"runs": runs, "ranks": ranks, "steps": steps}
        part = opened.of_roles(roles)
        # A call without parameters reads the materialized answer, if there is one.
        limit = {"min_pct": min_pct} if min_pct else {}
        print_advice(part, label(store, runs), {**scope, **limit})


def print_advice(opened: TraceStore, store: str, given: Mapping[str, Any]) -> None:
    """Print a paragraph for each rule, run by run.

    Args:
        opened: The store.
        store: Name of the store in printed commands.
        given: Parameters of the analysis.
    """
    from hta_sql.cli.terminal import wrapped  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.exports.losses import loss_sentences, missing_ranks  # noqa: PLC0415
    from hta_sql.text import counted  # noqa: PLC0415

    for limits in (missing_ranks, loss_sentences):
        for run, sentences in limits(opened, given.get("runs")).items():
            for sentence in sentences:
                note(wrapped(f"warning: {run} {sentence}"))
    found = [row for row in opened.run("advice", **given).records() if row["is_worst"]]
    for run, rows in groupby(found, key=lambda row: row["run"]):
        applicable = list(rows)
        count = sum(row["rule"] != LARGEST_LOSS for row in applicable)
        click.echo(f"{run}: {counted(count, 'recommendation')}{_together(applicable)}")
        for row in applicable:
            click.echo(wrapped(_paragraph(row, store, _replayed(opened, row))))
    if not found:
        note(f"No recommendations: {_reason_for_none(given)}.")
        if other := _other_content(opened):
            note(f"{other[0]} have a separate analysis: {other[1].format(shlex.quote(store))}")
        elif not any(row["gpu_op_count"] for row in opened.run("rank_health").records()):
            note("The traces contain no device activity, which most rules require.")


def _reason_for_none(given: Mapping[str, Any]) -> str:
    """Return why no rule applies, not even the one about the largest loss."""
    if given.get("min_pct"):
        return f"none saves {given['min_pct']:g} % of the step time (--min-pct)"
    if given.get("steps"):
        return "the selected steps have no times; the last profiler step is excluded"
    return "the traces have no events"


def _other_content(opened: TraceStore) -> tuple[str, str] | None:
    """Return the content of a store that advice ignores, and the command that analyzes it."""
    if opened.sql(query_sql("artifacts", "dumped_ranks")).rows():
        return "Flight Recorder dumps", "hta-sql hang {}"
    ((segments,),) = opened.sql(query_sql("artifacts", "snapshot_count")).rows()
    return ("Memory snapshots", "hta-sql run {} snapshot_peak") if segments else None


def _together(rows: list[dict[str, Any]]) -> str:
    """Return a phrase about the combined saving of several rules, on the rank where it is largest.

    It is empty unless at least two rules have a ceiling.
    """
    if sum(row["saved_ns"] is not None for row in rows) < 2:
        return ""
    most = max(rows, key=lambda row: row["combined_saved_ns"] or 0)
    share = f"{most['combined_saved_pct']:.1f} % of the recorded time"
    return f"; together they save {share} at most (rank {most['rank']})"


def _replayed(opened: TraceStore, row: dict[str, Any]) -> str:
    """Return what the replay of the job estimates for a recommendation; empty unless it does."""
    if row["rule"] != "late_rank":
        return ""
    for found in opened.run("what_if", runs=[row["run"]]).records():
        if found["scenario"] == "no late rank" and found["saved_pct"] is not None:
            least = "at least " if found["bound"] == "lower" else ""
            return (
                " Replayed without a late rank (what_if), the job takes "
                f"{least}{found['saved_pct']:.1f} % less."
            )
    return ""


def ranks_of(row: dict[str, Any]) -> list[int]:
    """Return the rank that the next analysis is limited to; empty unless it is about one rank."""
    from hta_sql.library.objects import load_library  # noqa: PLC0415 - lazy, to start faster

    parameters = {one.name for one in load_library().find(row["next_analysis"]).parameters}
    if row["rank_count"] > 1 or row["rule"] in ACROSS_RANKS or "ranks" not in parameters:
        return []
    return [row["rank"]]


def _paragraph(row: dict[str, Any], store: str, replayed: str) -> str:
    from hta_sql.text import cut_middle, printable, time_text  # noqa: PLC0415

    saves = "saves an unknown amount"
    if row["saved_ns"] is not None:
        saved, of_what = row["step_saved_ns"], "a step"
        if saved is None:
            saved, of_what = row["saved_ns"], "of the capture"
        saves = f"saves {time_text(saved)} {of_what} at most ({row['saved_pct']:.1f} %)"
    where = f"rank {row['rank']}"
    if row["rank_count"] > 1:
        where = f"{row['rank_count']} ranks, most on {where}"
    subject = printable(cut_middle(row["subject"], 80)) if row["subject"] else ""
    most = f" Most of it: {subject}." if subject and subject not in row["message"] else ""
    of_rank = "".join(f" --ranks {rank}" for rank in ranks_of(row))
    about = f"{row['position']}. {row['title']}: {saves}; {where}; confidence {row['confidence']}"
    if row["rule"] == LARGEST_LOSS:  # it saves nothing itself
        about = f"{row['title']} ({where})"
    lines = [
        f"\n{about}",
        f"   {printable(row['message'])}{most}{replayed}",
        f"   Try: {row['remedy']}",
        f"   See: hta-sql run {shlex.quote(store)} {row['next_analysis']}{of_rank}",
    ]
    return "\n".join(lines)
