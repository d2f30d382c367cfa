"""``hta-sql ingest-rank``: ingests the trace of one rank, and publishes the run with the last one."""

from __future__ import annotations

import shlex
from typing import Any

import click

from hta_sql.cli.messages import logged, note
from hta_sql.store.disk.locks import RANK_TIMEOUT_S
from hta_sql.text import rank_spans


@click.command(short_help="Ingest the trace of one rank as soon as it is recorded.")
@click.argument("trace", type=click.Path(dir_okay=False))
@click.option(
    "-o",
    "--output",
    "store",
    type=click.Path(file_okay=False),
    required=True,
    help="Folder or URL of the store; an existing store is extended.",
)
@click.option("--run", metavar="NAME", required=True, help="Name of the run.")
@click.option("--rank", type=click.IntRange(min=0), required=True, help="Rank of the process.")
@click.option(
    "--world-size",
    type=click.IntRange(min=1),
    required=True,
    help="Number of ranks that record a trace for the run.",
)
@click.option("--role", help="Role of the process in a job with several roles.")
@click.option(
    "--afterwards",
    type=click.Choice(["keep", "move", "delete"]),
    default="keep",
    help="What to do with the file of the trace: keep it, move it into the store, or delete it.",
)
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=RANK_TIMEOUT_S,
    help="Time to wait for ranks that have no trace yet.",
)
@click.option("--advice", is_flag=True, help="Print the advice for the run once it is published.")
def ingest_rank(*, advice: bool, **given: Any) -> None:
    """Ingest the TRACE of one rank of a run, and publish the run if it is the last rank.

    The command is what hta_sql.torch.trace_handler starts in each rank. It needs no other rank: all
    ranks write to the same store, a shared folder or a URL. The last one publishes the run, and
    prints what it has published; the others print nothing. If a rank has no trace after --wait
    seconds, the available ranks are published, with a warning that lists the missing ones. A rank
    that is later than that is added to the run.
    """
    from hta_sql.ingestion.recorded_rank import (  # noqa: PLC0415 - lazy, to start faster
        RecordedRank,
        ingest_recorded,
    )

    recorded = RecordedRank(**given)
    with logged(verbose=False):
        published = ingest_recorded(recorded)
    if published is None:
        return
    for failure in published.failures:
        note(f"warning: a trace could not be read: {failure}")
    if published.missing:
        note(
            f"warning: run {recorded.run}: no trace of {_named(published.missing)} after "
            f"{recorded.wait_s:g} s. The available ranks are published; later ones are added."
        )
    if not published.ranks:
        return
    store = shlex.quote(f"{recorded.store}:{recorded.run}")
    note(
        f"Published run {recorded.run} ({_named(published.ranks)} of {recorded.world_size}). Next: "
        f"hta-sql advice {store}, or hta-sql report {store} -o report.html"
    )
    if advice:
        _print_advice(recorded.store, recorded.run)


def _named(ranks: list[int]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {rank_spans(ranks)}"


def _print_advice(store: str, run: str) -> None:
    import hta_sql  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.cli.advice import print_advice  # noqa: PLC0415

    with hta_sql.open(store) as opened, logged(verbose=False):
        print_advice(opened, f"{store}:{run}", {"runs": [run], "ranks": None, "steps": None})
