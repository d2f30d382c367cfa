"""Builds catalog.duckdb: views and macros over the Parquet of a store, no data.

It is rebuilt whole beside the old one and moved over it, so readers see one or
the other; everybody opens it read-only. It carries the digest of the manifest
that it was built from: what the manifest names is the store, and a catalog of
another manifest, library or place is found out when it is opened.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from dataclasses import astuple, dataclass
from pathlib import Path

import duckdb

from hta_sql._version import __version__
from hta_sql.errors import StoreError, StoreVersionError
from hta_sql.library import sqltext
from hta_sql.library.creation import RANK_SCOPE
from hta_sql.library.files import stored_columns
from hta_sql.library.objects import Library, load_library
from hta_sql.machine import cache_folder
from hta_sql.store.columns import columns_digest
from hta_sql.store.files import StoreFolder, store_folder
from hta_sql.store.locks import LOCK_TIMEOUT_S, store_lock
from hta_sql.store.manifest import (
    CATALOG,
    RELATIVE_CATALOG,
    UPGRADE,
    Manifest,
    Store,
    digest_of,
    is_newer_version,
    manifest_bytes,
    parse_manifest,
)
from hta_sql.store.remote_binding import known_columns
from hta_sql.store.template import CONFIG, library_digest, template
from hta_sql.traces.writing import replacing

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Identity:
    """What a catalog was built from, and for where."""

    location: str
    manifest: str
    library: str


def identity_of(folder: StoreFolder, library: Library) -> Identity:
    """Say what a catalog that fits would be built from; reads the manifest.

    Raises:
        StoreNotFoundError: There is no store at that path.
    """
    return Identity(folder.root, digest_of(manifest_bytes(folder)), library_digest(library))


def built_from(con: duckdb.DuckDBPyConnection) -> Identity | None:
    """Read what an opened catalog was built from; None where it does not say so."""
    try:
        rows = con.execute("SELECT location, manifest, library FROM stored.store_info").fetchall()
    except duckdb.Error:
        return None
    return Identity(*rows[0]) if rows else None


def build_catalog(store: Store, library: Library | None = None, *, relative: bool = False) -> Path:
    """Build the catalog of a store from its manifest; returns where it is.

    Args:
        store: The store.
        library: Tables, macros and analyses; default: those of this installation.
        relative: Build :data:`RELATIVE_CATALOG` beside it as well, and return that. From then on
            it is rebuilt with the other.

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreVersionError: It was written with other table definitions.
        StoreError: An ingest is writing it, for longer than we wait.
    """
    folder = store_folder(store)
    manifest_bytes(folder)
    if relative and not folder.local:
        raise StoreError(
            f"{folder.root!r} is no folder of this machine: it has no relative catalog."
        )
    with store_lock(folder, LOCK_TIMEOUT_S):
        write_catalog(folder, library, relative=relative)
    return Path(folder.path(RELATIVE_CATALOG if relative else CATALOG))


def write_catalog(
    folder: StoreFolder, library: Library | None = None, *, relative: bool = False
) -> None:
    """Replace the catalog of a store, and the relative one if there is or shall be one.

    Under its lock.
    """
    library = library or load_library()
    if folder.local:
        with replacing(folder.local / CATALOG) as partial:
            _build(partial, folder, library)
        if relative or (folder.local / RELATIVE_CATALOG).exists():
            with replacing(folder.local / RELATIVE_CATALOG) as partial:
                _build(partial, folder, library, relative=True)
        return
    with tempfile.TemporaryDirectory() as temporary:
        built = Path(temporary, CATALOG)
        _build(built, folder, library)
        folder.put(built, CATALOG)


def private_catalog(folder: StoreFolder, library: Library, identity: Identity) -> Path:
    """Return a catalog in the user's cache, for a store whose own one cannot be used as it is.

    It is at a URL, or of another manifest or library and not ours to replace.
    """
    place = cache_folder() / "catalogs" / digest_of(folder.root.encode())[:16]
    target = place / f"{digest_of(repr(astuple(identity)).encode())[:24]}.duckdb"
    if target.exists():
        return target
    place.mkdir(parents=True, exist_ok=True)
    with replacing(target) as partial:
        if not _fetched(partial, folder, identity):
            _build(partial, folder, library)
        for outdated in place.glob("*.duckdb"):
            outdated.unlink(missing_ok=True)
    return target


def _fetched(target: Path, folder: StoreFolder, identity: Identity) -> bool:
    """Copy the store's own catalog, if it is the right one."""
    try:
        target.write_bytes(folder.read(CATALOG))
        with duckdb.connect(str(target), read_only=True) as con:
            if built_from(con) == identity:
                return True
    except (OSError, duckdb.Error) as error:
        log.debug("No catalog to copy from %s: %s", folder.root, error)
    target.unlink(missing_ok=True)
    return False


def _build(target: Path, folder: StoreFolder, library: Library, *, relative: bool = False) -> None:
    """Copy the template and put the tables of a store below its views."""
    content = manifest_bytes(folder)
    manifest = parse_manifest(content, folder)
    readable, left_out = split_by_schema(manifest, columns_digest(), folder)
    shutil.copyfile(template(library), target)
    # The engine looks for the files while it creates a view.
    found_from = {"file_search_path": str(folder.local)} if relative else {}
    with duckdb.connect(str(target), config=CONFIG | found_from) as con:
        if filesystem := folder.filesystem():
            con.register_filesystem(known_columns(con, filesystem, stored_columns()))
        place = "" if relative else folder.root
        identity = Identity(place, digest_of(content), library_digest(library))
        con.execute("BEGIN")
        for name in stored_columns():
            if paths := readable.paths(name):
                located = paths if relative else [folder.path(path) for path in paths]
                con.execute(sqltext.parquet_view(name, located))
        # A table: 1,600 ranks as a view of constants cost every client that opens it 34 ms.
        for statement in sqltext.replace_view_by_table("stored.rank_scope", _rank_scope(readable)):
            con.execute(statement)
        con.execute(_store_info(identity, manifest, left_out))
        con.execute("COMMIT")


def split_by_schema(
    manifest: Manifest, schema: str, folder: StoreFolder
) -> tuple[Manifest, list[str]]:
    """Keep the entries whose files have today's columns; returns them and the other runs.

    Raises:
        StoreVersionError: There are entries, but none of them has.
    """
    readable = [entry for entry in manifest.entries if entry.schema == schema]
    left_out = sorted({entry.run for entry in manifest.entries if entry.schema != schema})
    if left_out and not readable:
        again = f"Ingest its traces again: hta-sql ingest TRACES -o {folder.root}"
        raise StoreVersionError(
            f"{folder.root!r} was written with other table definitions (by hta_sql "
            f"{manifest.writer}; this is {__version__}). "
            f"{UPGRADE if is_newer_version(manifest.writer) else again}"
        )
    return Manifest(readable, manifest.writer), left_out


def _rank_scope(manifest: Manifest) -> str:
    """What depends on all ranks of a run: its common zero and its number of steps.

    A trace without a base time may count from the start of the machine: such ranks have a zero of
    their own, or they would lie half a century before the others.
    """
    starts: dict[tuple[str, bool], int] = {}
    steps: dict[str, set[str]] = {}
    for entry in manifest.entries:
        if entry.start_ns is not None:
            clock = (entry.run, _is_unix_time(entry.start_ns))
            starts[clock] = min(starts.get(clock, entry.start_ns), entry.start_ns)
        steps.setdefault(entry.run, set()).update(entry.step_names)
    rows = [
        (
            *(e.run, e.rank, e.start_ns - starts[e.run, _is_unix_time(e.start_ns)]),
            len(steps[e.run]) >= 2,
        )
        if e.start_ns is not None
        else (e.run, e.rank, 0, False)
        for e in manifest.entries
    ]
    return sqltext.values(RANK_SCOPE, rows)


def _is_unix_time(start_ns: int) -> bool:
    """Tell a time since 1970 from one since the start of a machine: fifteen years lie between."""
    return start_ns > 500_000_000_000_000_000


def _store_info(identity: Identity, manifest: Manifest, left_out: list[str]) -> str:
    """Where the catalog expects its files, and what it was made from."""
    values = {
        "location": identity.location,
        "manifest": identity.manifest,
        "library": identity.library,
        "hta_sql_version": __version__,
        "writer": manifest.writer,
        "left_out": ", ".join(left_out),
    }
    columns = dict.fromkeys(values, "VARCHAR")
    return sqltext.values_view("stored.store_info", columns, [list(values.values())])
