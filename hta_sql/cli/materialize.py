"""``hta-sql materialize``: compute once what is asked often, and keep it."""

from __future__ import annotations

from pathlib import Path

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import STORE


@click.command(short_help="Compute once what is asked often, and keep it.")
@click.argument("store", type=STORE)
@click.argument("analyses", nargs=-1)
@click.option("--run", "runs", multiple=True, metavar="RUN", help="Run to compute; default: all.")
@click.option("--list", "lists", is_flag=True, help="Say what is kept, and compute nothing.")
def materialize(
    *, store: Path, analyses: tuple[str, ...], runs: tuple[str, ...], lists: bool
) -> None:
    """Keep what ANALYSES return for each run of a STORE, so that views read it.

    Without names: all whose answer for a run is below 100 kB, and the derived tables (matched
    collectives, clocks of ranks, parts of steps) that they stand on. A larger answer is kept where
    its analysis is named. What is kept already is not computed again: run it after each ingest, or
    have the ingest do it (--materialize). Views give the same rows either way; what is kept is
    computed anew when traces are read again, or when the SQL of an analysis changes.
    """
    from hta_sql.store.catalog.materialize import materialize_answers  # noqa: PLC0415 - start-up cost

    if lists:
        _list(store)
        return
    with logged(verbose=False):
        kept = materialize_answers(store, analyses, runs or None)
    for one in kept:
        size = _kilobytes(one.bytes)
        left = f"; {size}, kept only when it is named" if one.is_left_out else f", {size}"
        note(f"Computed {one.table} of run {one.run}: {one.rows:,} rows{left}.")
    if not kept:
        note("All of it is there.")


def _list(store: Path) -> None:
    """Print what is kept and up to date, a line for each analysis or derived table."""
    from hta_sql.library.objects import load_library  # noqa: PLC0415 - start-up cost
    from hta_sql.store.catalog.materialized_tables import kept_tables  # noqa: PLC0415
    from hta_sql.store.disk.manifest import read_manifest  # noqa: PLC0415
    from hta_sql.text import counted  # noqa: PLC0415

    manifest = read_manifest(store)
    found = list(kept_tables(manifest, load_library()).values())
    runs = len(manifest.runs())
    for name in sorted({one.table for one in found}):
        own = [one for one in found if one.table == name]
        kept = [one for one in own if not one.is_left_out]
        line = f"{name}: {len(kept)} of {counted(runs, 'run')}"
        line += f", {sum(one.rows for one in kept):,} rows, {_kilobytes(sum(one.bytes for one in kept))}"
        if large := [one.bytes for one in own if one.is_left_out]:
            line += f"; {counted(len(large), 'run')} left out, up to {_kilobytes(max(large))}"
        click.echo(line)
    total = sum(one.bytes for one in found if not one.is_left_out)
    note(f"{_kilobytes(total)} in all.")


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.1f} kB"
