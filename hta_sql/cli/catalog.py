"""``hta-sql catalog``: rebuild the views and macros of a store."""

from __future__ import annotations

import time
from pathlib import Path

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import STORE


@click.command(short_help="Rebuild the catalog of a store.")
@click.argument("store", type=STORE)
@click.option(
    "--relative",
    is_flag=True,
    help="Build catalog_relative.duckdb as well: for clients that see the store under another "
    "path. Start them in the store's folder, or SET file_search_path = '/its/path'.",
)
def catalog(*, store: Path, relative: bool) -> None:
    """Rebuild the catalog of a STORE: its views and macros; no data changes.

    Needed after a store was moved or copied, or to give an old store the analyses of a newer
    version of this program.
    """
    import hta_sql  # noqa: PLC0415
    from hta_sql.library.objects import load_library  # noqa: PLC0415
    from hta_sql.store.catalog import build_catalog  # noqa: PLC0415 - imports are the start-up cost
    from hta_sql.store.manifest import read_manifest  # noqa: PLC0415

    started = time.monotonic()
    manifest, library = read_manifest(store), load_library()
    path = build_catalog(store, library, relative=relative)
    note(
        f"Built {path} in {time.monotonic() - started:.1f} s: {len(manifest.runs())} runs, "
        f"{len(manifest.entries)} ranks, {len(library.tables)} tables, "
        f"{len(library.analyses)} analyses."
    )
    with logged(verbose=False):
        hta_sql.open(store).close()  # which warns of runs that are left out
