"""``hta-sql publish``: publishes the shards that the jobs of an array have ingested."""

from __future__ import annotations

from pathlib import Path

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import STORE, materialize_option
from hta_sql.text import counted


@click.command(short_help="Publish the shards of an ingest.")
@click.argument("store", type=STORE)
@click.option(
    "--run",
    metavar="NAME",
    show_default="all runs",
    help="Publish only the shards of this run.",
)
@click.option(
    "--expect",
    type=click.IntRange(min=1),
    metavar="N",
    show_default="publish the available ones",
    help="Fail, and publish nothing, unless all N shards are available.",
)
@materialize_option
def publish(store: Path, run: str | None, expect: int | None, *, materialize: bool) -> None:
    """Publish the shards of a STORE that `hta-sql ingest --shard I/N` or `ingest-rank` has ingested.

    They become visible at once. Running it again changes nothing.
    """
    import hta_sql  # noqa: PLC0415 - lazy, to start faster

    with (
        logged(verbose=False),
        hta_sql.publish(store, run=run, expect=expect, materialize=materialize) as opened,
    ):
        report = opened.published
    if report is None:
        return
    for failure in report.failures:
        note(f"warning: a trace could not be read: {failure}")
    if report.missing:
        few = ", ".join(report.missing[:20])
        note(f"warning: {counted(len(report.missing), 'shard')} missing: {few}")
    merged = counted(len(report.merged), "shard")
    done = f"Published {merged}" if report.merged else "Nothing to publish"
    follow_up = f"hta-sql advice {store}, or hta-sql report {store} -o report.html"
    note(f"{done}; {counted(report.ranks, 'rank')} in the store. Next: {follow_up}")
