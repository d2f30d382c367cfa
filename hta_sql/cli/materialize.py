"""``hta-sql materialize``: materializes answers and derived tables."""

from __future__ import annotations

from pathlib import Path

import click

from hta_sql.cli.messages import logged, note, slow_progress
from hta_sql.cli.options import runs_option
from hta_sql.cli.selection import store_argument
from hta_sql.errors import HtaSqlError
from hta_sql.text import counted


@click.command(short_help="Materialize answers and derived tables.")
@store_argument()
@click.argument("analyses", nargs=-1)
@runs_option
@click.option(
    "--list", "lists", is_flag=True, help="List what is materialized, and compute nothing."
)
def materialize(
    *, store: Path, analyses: tuple[str, ...], runs: list[str] | None, lists: bool
) -> None:
    """Materialize what ANALYSES return for each run of a STORE, so that views read it.

    Without names: all analyses whose answer for a run is smaller than 100 kB, and the derived
    tables (matched collectives, clocks of ranks, parts of steps) that they depend on. A larger
    answer is materialized only if its analysis is named. Answers that exist already are not
    computed again: run this after each ingest, or use ingest --materialize. Views return the same
    rows either way. Answers are recomputed when traces are ingested again, or when the SQL of an
    analysis changes. If the engine fails to compute a result, the others are materialized, and the
    exit code is 1.
    """
    from hta_sql.replay.watch import Watch  # noqa: PLC0415
    from hta_sql.store.catalog.materialize import materialize_answers  # noqa: PLC0415 - lazy, to start faster

    if lists:
        _list(store)
        return
    with logged(verbose=False), slow_progress("Computing") as progress:
        watch = Watch(progress=progress)
        failed: dict[tuple[str, str], str] = {}
        kept = materialize_answers(store, analyses, runs or None, failed=failed, watch=watch)
    for one in kept:
        size = _kilobytes(one.bytes)
        left = f"; {size}, materialized only if named" if one.is_left_out else f", {size}"
        note(f"Computed {one.table} of run {one.run}: {counted(one.rows, 'row')}{left}.")
    if failed:
        names = sorted({name for name, _ in failed})
        raise HtaSqlError(
            f"{counted(len(failed), 'result')} of {counted(len({run for _, run in failed}), 'run')} cannot be "
            f"materialized, so each query computes them: {', '.join(names)}. See the warnings above."
        )
    if not kept:
        note("Everything is already materialized.")


def _list(store: Path) -> None:
    """Print the up-to-date materialized tables, a line for each analysis or derived table."""
    from hta_sql.library.objects import load_library  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.store.catalog.materialized_tables import kept_tables  # noqa: PLC0415
    from hta_sql.store.disk.manifest import read_manifest  # noqa: PLC0415

    manifest = read_manifest(store)
    found = list(kept_tables(manifest, load_library()).values())
    runs = len(manifest.runs())
    for name in sorted({one.table for one in found}):
        own = [one for one in found if one.table == name]
        kept = [one for one in own if not one.is_left_out]
        line = f"{name}: {len(kept)} of {counted(runs, 'run')}"
        line += f", {counted(sum(one.rows for one in kept), 'row')}, {_kilobytes(sum(one.bytes for one in kept))}"
        if large := [one.bytes for one in own if one.is_left_out]:
            line += f"; {counted(len(large), 'run')} omitted, up to {_kilobytes(max(large))}"
        click.echo(line)
    total = sum(one.bytes for one in found if not one.is_left_out)
    note(f"{_kilobytes(total)} in total.")


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.1f} kB"
