"""``hta-sql publish``: put together what the jobs of an array have read."""

from __future__ import annotations

from pathlib import Path

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import STORE, materialize_option


@click.command(short_help="Put the shards of an ingest together.")
@click.argument("store", type=STORE)
@click.option(
    "--expect",
    type=click.IntRange(min=1),
    metavar="N",
    show_default="publish what is there",
    help="Fail, and publish nothing, unless all of N shards are there.",
)
@materialize_option
def publish(store: Path, expect: int | None, *, materialize: bool) -> None:
    """Put the shards of a STORE together that `hta-sql ingest --shard I/N` has read.

    They become visible at once. Running it again changes nothing.
    """
    import hta_sql  # noqa: PLC0415 - imports are the start-up cost

    with (
        logged(verbose=False),
        hta_sql.publish(store, expect=expect, materialize=materialize) as opened,
    ):
        report = opened.published
    if report is None:
        return
    for failure in report.failures:
        note(f"warning: not read: {failure}")
    if report.missing:
        note(f"warning: {len(report.missing)} shards are missing: {', '.join(report.missing[:20])}")
    merged = f"Published {len(report.merged)} shards" if report.merged else "Nothing to publish"
    note(f"{merged}; {report.ranks:,} ranks in the store. Next: hta-sql list {store}")
