"""``hta-sql repair``: repairs a store, and quarantines what cannot be repaired."""

from __future__ import annotations

from pathlib import Path

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import STORE
from hta_sql.cli.verify import show_faults


@click.command(short_help="Repair a store; quarantine what cannot be repaired.")
@click.argument("store", type=STORE)
@click.option("--deep", is_flag=True, help="Verify as hta-sql verify --deep does.")
@click.pass_context
def repair(ctx: click.Context, *, store: Path, deep: bool) -> None:
    """Repair the faults that hta-sql verify finds in a STORE.

    The catalog and materialized tables are rebuilt, and a damaged manifest is restored from the
    catalog. A rank with damaged files is ingested again if its trace still exists unchanged.
    Otherwise it is quarantined and its run is excluded; other runs stay usable, and ingesting its
    traces restores the run. The exit code is 1 if anything is quarantined.
    """
    from hta_sql.api import repair_store  # noqa: PLC0415 - lazy, to start faster

    with logged(verbose=False):
        done = repair_store(str(store), deep=deep)
    show_faults(done.faults)
    for run, rank in done.read_again:
        note(f"Re-read rank {rank} of run {run}.")
    for (run, rank), why in done.aside.items():
        note(f"warning: run {run} is quarantined: rank {rank} is damaged, and {why}")
    if not done.faults and not done.read_again and not done.aside:
        note("The store is intact.")
    if done.aside:
        ctx.exit(1)
