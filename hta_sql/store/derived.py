"""Derived tables: what needs all ranks of a run, computed once and kept beside the tables.

A versioned SQL file computes such a table (sql/derived), and its rows of one run are one Parquet
file. The manifest names it by a key: a hash of the SQL, of all that it stands on in the library,
and of the files of the run. Neither changes, so that what is kept never grows old; a rank that is
read again has other files, and what was computed of it is not found any more.

The view of a derived table reads what is kept and computes the rest, with the same rows.
"""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from hta_sql.library import sqltext
from hta_sql.library.objects import Library, SqlObject
from hta_sql.store.columns import Part
from hta_sql.store.files import StoreFolder
from hta_sql.store.manifest import TABLES, KeptTable, Manifest, digest_of
from hta_sql.traces.writing import make_folder, replacing

log = logging.getLogger(__name__)

OPTIONS = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1"


def keys_of(manifest: Manifest, library: Library) -> dict[tuple[str, str], str]:
    """Name what each derived table of each run is computed from: (table, run) ─▶ key."""
    files: dict[str, list[str]] = defaultdict(list)
    for entry in manifest.entries:
        files[entry.run] += [file["path"] for file in entry.files.values()]
    digests = {run: digest_of("\n".join(sorted(paths)).encode()) for run, paths in files.items()}
    return {
        (table, run): digest_of(f"{sql} {digest}".encode())
        for table, sql in library.derived_digests.items()
        for run, digest in digests.items()
    }


def kept_tables(manifest: Manifest, library: Library) -> dict[tuple[str, str], KeptTable]:
    """Find what is kept and up to date: (table, run) ─▶ where it is."""
    keys = keys_of(manifest, library)
    tables = {(kept.table, kept.run): kept for kept in manifest.kept}
    return {at: kept for at, kept in tables.items() if kept.key == keys.get(at)}


def missing_tables(
    manifest: Manifest, library: Library, runs: Collection[str] | None = None
) -> list[tuple[SqlObject, list[str]]]:
    """List what is not kept: what computes it and its runs, in the order in which to compute.

    Args:
        manifest: What is in the store.
        library: Tables, macros and analyses.
        runs: Runs to look at; None: all.
    """
    kept = kept_tables(manifest, library)
    wanted = [run for run in manifest.runs() if runs is None or run in runs]
    missing = (
        (about, [run for run in wanted if (about.base_name, run) not in kept])
        for about in library.derived
    )
    return [(about, runs) for about, runs in missing if runs]


def kept_parts(manifest: Manifest, library: Library) -> list[Part]:
    """List the files of derived tables, those of one table together."""
    columns = library.derived_columns()
    kept = kept_tables(manifest, library).values()
    return [
        Part(columns[name], [one.path for one in kept if one.table == name and one.path])
        for name in columns
    ]


def derived_views(manifest: Manifest, library: Library, place: str) -> list[str]:
    """Build the statements that define the views of derived tables that a store keeps some of.

    Args:
        manifest: What is in the store.
        library: Tables, macros and analyses.
        place: What to put before the paths of the files: that of the store, and a slash.
    """
    kept = kept_tables(manifest, library).values()
    missing = {about.base_name: runs for about, runs in missing_tables(manifest, library)}
    views = (
        _view(library, about, kept, place, missing.get(about.base_name, ()))
        for about in library.derived
    )
    return [view for view in views if view]


def _view(
    library: Library,
    about: SqlObject,
    kept: Iterable[KeptTable],
    place: str,
    missing: Collection[str] = (),
) -> str | None:
    """Build the view of one; None where nothing of it is kept, as the template says already."""
    name = about.base_name
    own = [one for one in kept if one.table == name]
    if not own:
        return None
    paths = [place + one.path for one in own if one.path]
    columns = library.derived_columns()[name]
    if not paths and not missing:
        return sqltext.values_view(f"derived.{sqltext.identifier(name)}", columns, [])
    return sqltext.derived_view(name, columns, paths, about.name, missing)


def computed(
    con: duckdb.DuckDBPyConnection,
    folder: StoreFolder,
    manifest: Manifest,
    library: Library,
    runs: Collection[str] | None,
) -> Manifest:
    """Compute what is not kept, and write it; returns the manifest that names it as well.

    Args:
        con: A catalog of the store, which may be written.
        folder: The store.
        manifest: What is in it.
        library: Tables, macros and analyses.
        runs: Runs to compute; None: all.
    """
    keys = keys_of(manifest, library)
    kept = kept_tables(manifest, library)
    for about, missing in missing_tables(manifest, library, runs):
        for run in missing:
            at = (about.base_name, run)
            path = f"{TABLES}/{about.base_name}/run={run}/all/{uuid.uuid4().hex[:12]}.parquet"
            rows = _write(con, folder, about, run, path)
            kept[at] = KeptTable(*at, keys[at], path if rows else None, rows)
        # The next one reads it from the files.
        if view := _view(library, about, kept.values(), f"{folder.root}/"):
            con.execute(view)
    folder.settle(one.path for one in kept.values() if one.path)
    return replace(manifest, kept=sorted(kept.values(), key=lambda one: (one.table, one.run)))


def _write(
    con: duckdb.DuckDBPyConnection, folder: StoreFolder, about: SqlObject, run: str, path: str
) -> int:
    """Compute the rows of a run; returns how many there are. Without any there is no file."""
    select = sqltext.derived_rows(about.name)
    with _target(folder, path) as target:
        statement = sqltext.copy_to_path(select, OPTIONS)
        ((rows,),) = con.execute(statement, {"run": run, "path": str(target)}).fetchall()
    if not rows:
        folder.remove([path])
    log.info("Computed %s of run %s: %d rows.", about.base_name, run, rows)
    return int(rows)


@contextmanager
def _target(folder: StoreFolder, path: str) -> Iterator[Path]:
    """Give the local name to write to; what was written is then at its place in the store."""
    if folder.local:
        make_folder((folder.local / path).parent)
        with replacing(folder.local / path) as partial:
            yield partial
        return
    with TemporaryDirectory() as temporary:
        local = Path(temporary, "rows.parquet")
        yield local
        folder.put(local, path)
