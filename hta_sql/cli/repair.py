"""``hta-sql repair``: mend a store, set aside what cannot be mended."""

from __future__ import annotations

from pathlib import Path

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import STORE
from hta_sql.cli.verify import show_faults


@click.command(short_help="Mend a store; set aside what cannot be mended.")
@click.argument("store", type=STORE)
@click.option("--deep", is_flag=True, help="Look for faults as hta-sql verify --deep does.")
@click.pass_context
def repair(ctx: click.Context, *, store: Path, deep: bool) -> None:
    """Mend what hta-sql verify finds wrong with a STORE.

    The catalog and what was computed are built anew, a damaged manifest comes back from the catalog. A
    rank whose files are damaged is read again, if its trace is there and is the one that was
    read. Else its run is set aside: the others answer, and an ingest of its traces brings it back. Exit
    code 1 if something is set aside.
    """
    from hta_sql.api import repair_store  # noqa: PLC0415 - start-up cost

    with logged(verbose=False):
        done = repair_store(str(store), deep=deep)
    show_faults(done.faults)
    for run, rank in done.read_again:
        note(f"Read again: run {run} rank {rank}.")
    for (run, rank), why in done.aside.items():
        note(f"warning: run {run} is set aside: rank {rank} is damaged, and {why}")
    if not done.faults and not done.read_again and not done.aside:
        note("Nothing is wrong with it.")
    if done.aside:
        ctx.exit(1)
