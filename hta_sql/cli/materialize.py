"""``hta-sql materialize``: compute what needs all ranks of a run, and keep it."""

from __future__ import annotations

from pathlib import Path

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import STORE


@click.command(short_help="Compute what needs all ranks of a run, and keep it.")
@click.argument("store", type=STORE)
@click.option("--run", "runs", multiple=True, metavar="RUN", help="Run to compute; default: all.")
def materialize(store: Path, runs: tuple[str, ...]) -> None:
    """Compute the derived tables of a STORE that it does not keep yet.

    They are matched collectives, the clocks of the ranks and the parts of steps. An ingest of a
    large job computes them at its end, and so does the first question that reads them, where the
    store may be written: this is for stores that readers may not write.
    """
    from hta_sql.store.materialize import materialize as compute  # noqa: PLC0415 - start-up cost

    with logged(verbose=False):
        kept = compute(store, runs or None)
    for one in kept:
        note(f"Computed {one.table} of run {one.run}: {one.rows:,} rows.")
    if not kept:
        note("All of it is there.")
