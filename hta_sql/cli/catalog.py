"""``hta-sql catalog``: rebuild the views and macros of a store."""

from __future__ import annotations

import time
from pathlib import Path

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import STORE
from hta_sql.text import counted


@click.command(short_help="Rebuild the catalog of a store.")
@click.argument("store", type=STORE)
@click.option(
    "--relative",
    is_flag=True,
    help="Also build catalog_relative.duckdb, for clients that see the store under another path. "
    "Start them in the store's folder, or SET file_search_path = '/its/path'.",
)
@click.option(
    "--analyses",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    metavar="DIR",
    help="Copy the analyses in this folder into the store, replacing earlier ones. All clients of "
    "its catalog then have their views. May be repeated.",
)
@click.option(
    "--no-analyses", "shipped_only", is_flag=True, help="Remove these analyses from the store."
)
def catalog(*, store: Path, relative: bool, analyses: tuple[Path, ...], shipped_only: bool) -> None:
    """Rebuild the catalog of a STORE: its views and macros. Data does not change.

    Needed after a store was moved or copied, or to give an old store the analyses of a newer
    version of this program.
    """
    import hta_sql  # noqa: PLC0415
    from hta_sql.library.objects import load_library  # noqa: PLC0415
    from hta_sql.library.sql_files import query_sql  # noqa: PLC0415
    from hta_sql.library.user_analyses import library_with  # noqa: PLC0415
    from hta_sql.store.catalog.build import build_catalog  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.store.disk.manifest import read_manifest  # noqa: PLC0415

    if analyses and shipped_only:
        raise click.UsageError("--analyses and --no-analyses cannot be combined")
    started = time.monotonic()
    manifest = read_manifest(store)
    library = load_library() if shipped_only else library_with(analyses) if analyses else None
    with logged(verbose=False):
        path = build_catalog(store, library, relative=relative)
        # Opening the store warns of excluded runs.
        with hta_sql.open(store, analyses=()) as opened:
            ((count,),) = opened.sql(query_sql("catalog", "analysis_count")).rows()
    note(
        f"Built {path} in {time.monotonic() - started:.1f} s: {counted(len(manifest.runs()), 'run')}, "
        f"{counted(len(manifest.entries), 'rank')}, {len(load_library().tables)} tables, {count} analyses."
    )
