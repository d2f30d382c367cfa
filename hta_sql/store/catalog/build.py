"""Builds catalog.duckdb: views and macros over the Parquet files of a store, without data.

The catalog is rebuilt in a temporary file that replaces the old one, so readers see either the old
or the new one. It is always opened read-only. It records the digest of its manifest, because the
manifest defines the store. When a catalog is opened, a mismatch of its manifest, library or
location is detected. A manifest is replaced only after its catalog is built. Runs that cannot be
read are excluded from the catalog.
"""

from __future__ import annotations

import logging
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path

import duckdb

from hta_sql._version import __version__
from hta_sql.errors import StoreDamagedError, StoreError
from hta_sql.library import sqltext
from hta_sql.library.creation import SCOPE_TABLES
from hta_sql.library.engine_settings import discard_at_end
from hta_sql.library.objects import Library, load_library
from hta_sql.library.sql_files import query_sql, stored_columns
from hta_sql.machine import cache_folder, temporary_folder
from hta_sql.store.catalog.columns import StoredFiles, stored_files
from hta_sql.store.catalog.materialized_tables import materialized_files, materialized_views
from hta_sql.store.catalog.rank_scope import scope_rows
from hta_sql.store.catalog.shared_engine import scratch
from hta_sql.store.catalog.template import (
    BESIDE,
    CONFIG,
    STORAGE_VERSION,
    Config,
    library_digest,
    template,
)
from hta_sql.store.catalog.user_analyses import store_user_analyses, with_those_of_store
from hta_sql.store.disk.file_checks import (
    Fault,
    described,
    faults_of,
    files_of,
    size_faults,
    warn_of_faults,
)
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.manifest import (
    CATALOG,
    MANIFEST,
    RELATIVE_CATALOG,
    Manifest,
    Store,
    digest_of,
    manifest_bytes,
    manifest_content,
    parse_manifest,
)
from hta_sql.store.disk.run_names import is_run_name
from hta_sql.traces.writing import replacing

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Identity:
    """Inputs of a catalog: store location, manifest and library."""

    location: str
    manifest: str
    library: str

    def serves(self, wanted: Identity) -> bool:
        """Return whether a catalog with this identity can be used for an expected identity.

        The catalog may contain additional user analyses.
        """
        beside = BESIDE in wanted.library
        library = self.library if beside else self.library.partition(BESIDE)[0]
        return replace(self, library=library) == wanted


def identity_of(folder: StoreFolder, library: Library) -> Identity:
    """Read the manifest of a store, and return the identity that an up-to-date catalog has.

    Raises:
        StoreNotFoundError: There is no store at that path.
    """
    return identity_with(manifest_bytes(folder), folder, library)


def identity_with(content: bytes, folder: StoreFolder, library: Library) -> Identity:
    """Return the identity of an up-to-date catalog for the content of a manifest."""
    return Identity(folder.root, digest_of(content), library_digest(library))


def built_from(con: duckdb.DuckDBPyConnection) -> Identity | None:
    """Read the identity of an open catalog; None if the catalog records no identity."""
    try:
        rows = con.execute(query_sql("catalog", "identity")).fetchall()
    except duckdb.OutOfMemoryException:
        raise  # the identity of the catalog remains unknown
    except duckdb.Error:
        return None
    return Identity(*rows[0]) if rows else None


def build_catalog(store: Store, library: Library | None = None, *, relative: bool = False) -> Path:
    """Build the catalog of a store from its manifest; return its path.

    Args:
        store: The store.
        library: Tables, macros and analyses. Default: the shipped library and the user analyses in
            the store. Objects beyond the shipped library are saved in the store, so that later
            catalogs contain them.
        relative: Also build :data:`RELATIVE_CATALOG`, and return its path. From then on, both are
            rebuilt together.

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreVersionError: The store was written with different table definitions.
        StoreError: The lock was not released within the timeout.
        LibraryError: The engine rejects a file of the library.
    """
    folder = store_folder(store)
    manifest_bytes(folder)
    if relative and not folder.local:
        raise StoreError(f"{folder.root!r} is not a local folder, so it has no relative catalog.")
    with store_lock(folder):
        if library:
            template(library)  # raises if the library is invalid
            store_user_analyses(folder, library)
        write_catalog(folder, library, relative=relative)
    return Path(folder.path(RELATIVE_CATALOG if relative else CATALOG))


def write_catalog(
    folder: StoreFolder, library: Library | None = None, *, relative: bool = False
) -> None:
    """Replace the catalog of a store, and its relative catalog if that exists or is requested.

    Call only under the store's lock.
    """
    _write(folder, manifest_bytes(folder), library or load_library(), relative=relative)


def build_aside(target: Path, folder: StoreFolder) -> None:
    """Build an up-to-date catalog of a store in a separate file."""
    _build(target, folder, manifest_bytes(folder), with_those_of_store(folder, load_library()))


def manifest_of(con: duckdb.DuckDBPyConnection, folder: StoreFolder) -> Manifest:
    """Return the manifest that a catalog was built from."""
    ((content,),) = con.execute(query_sql("catalog", "manifest")).fetchall()
    return parse_manifest(zlib.decompress(content), folder)


def publish_manifest(folder: StoreFolder, manifest: Manifest) -> None:
    """Build the catalog of a new manifest, then replace the manifest and the catalog of a store.

    Call only under the store's lock.
    """
    _write(folder, manifest_content(manifest), load_library(), publishes=True)


def _write(
    folder: StoreFolder,
    content: bytes,
    library: Library,
    *,
    relative: bool = False,
    publishes: bool = False,
) -> None:
    """Build catalogs in temporary files, then replace the manifest (if it changed) and catalogs."""
    if not library.shipped:
        library = with_those_of_store(folder, library)
    with ExitStack() as ready:
        if folder.local:
            built = ready.enter_context(replacing(folder.local / CATALOG))
            if relative or (folder.local / RELATIVE_CATALOG).exists():
                aside = ready.enter_context(replacing(folder.local / RELATIVE_CATALOG))
                _build(aside, folder, content, library, relative=True)
        else:
            built = Path(ready.enter_context(temporary_folder()), CATALOG)
        _build(built, folder, content, library)
        if publishes:
            folder.replace(MANIFEST, content)
        if not folder.local:
            folder.put(built, CATALOG)


def private_catalog(
    folder: StoreFolder,
    library: Library,
    identity: Identity,
    faults: Sequence[Fault] = (),
) -> Path:
    """Return a catalog in the user's cache, for a store whose own catalog cannot be used.

    This is the case if the store is at a URL, if its catalog is stale and cannot be replaced, or if
    files went missing or changed after the catalog was built (``faults``).
    """
    whose = [
        folder.root,
        *sorted({str(about.path.parent) for about in library.user_library.analyses}),
    ]
    place = cache_folder("catalogs") / digest_of("\n".join(whose).encode())[:16]
    parts = (*astuple(identity), *sorted(fault.file for fault in faults))
    target = place / f"{digest_of(repr(parts).encode())[:24]}.duckdb"
    if target.exists():
        return target
    place.mkdir(parents=True, exist_ok=True)
    with replacing(target) as partial:
        if faults or not _fetched(partial, folder, identity):
            _build(partial, folder, manifest_bytes(folder), library, faults=faults)
        for outdated in place.glob("*.duckdb"):
            outdated.unlink(missing_ok=True)
    return target


def _fetched(target: Path, folder: StoreFolder, identity: Identity) -> bool:
    """Copy the store's own catalog if it is up to date; return whether it was copied."""
    try:
        target.write_bytes(folder.read(CATALOG))
        with duckdb.connect(str(target), read_only=True) as con:
            if (built := built_from(con)) and built.serves(identity):
                return True
    except (OSError, duckdb.Error) as error:
        log.debug("No catalog to copy from %s: %s", folder.root, error)
    target.unlink(missing_ok=True)
    return False


def _build(
    target: Path,
    folder: StoreFolder,
    content: bytes,
    library: Library,
    *,
    relative: bool = False,
    faults: Sequence[Fault] = (),
) -> None:
    """Build a catalog of the runs that have all of their files, except those with known faults.

    Derived tables whose files are missing or damaged are computed by each query.

    Raises:
        StoreDamagedError: There are runs, but none of them has all of its files.
    """
    manifest = parse_manifest(content, folder)
    identity = identity_with(content, folder, library)
    built_of = replace(identity, location="" if relative else folder.root), content
    known = {fault.file for fault in faults}
    files = [file for file in files_of(manifest) if file.path not in known]
    found = size_faults(folder, files) if folder.local else []
    try:
        readable = _readable(manifest, folder, [*faults, *found])
        _build_of(target, folder, readable, built_of, library)
    except duckdb.Error:
        # For the columns of a table, the engine reads the footer of one of its files.
        if len(changed := faults_of(folder, files)) == len(found):
            raise
        found = changed
        readable = _readable(manifest, folder, [*faults, *found])
        _build_of(target, folder, readable, built_of, library)
    if found:
        warn_of_faults(folder.root, found)


def _readable(manifest: Manifest, folder: StoreFolder, faults: Sequence[Fault]) -> StoredFiles:
    """Return the files of a store without runs with faults, and without invalid names of runs."""
    invalid = [run for run in manifest.runs() if not is_run_name(run)]
    whole = manifest.without_files({fault.file for fault in faults}).without(invalid)
    if faults and not whole.entries:
        raise StoreDamagedError(
            f"No run in {folder.root!r} can be read: {described(folder.root, faults)}"
        )
    lost = set(manifest.runs()) - set(whole.runs())
    return replace(stored_files(whole, folder), lost=tuple(lost))


def _build_of(
    target: Path,
    folder: StoreFolder,
    files: StoredFiles,
    built_of: tuple[Identity, bytes],
    library: Library,
) -> None:
    """Copy the template, then add the tables below its views and a copy of the manifest."""
    identity, content = built_of
    relative = not identity.location
    shutil.copyfile(template(library), target)
    with _to_be_filled(target, folder, relative=relative) as con:
        con.begin()
        put_tables(con, folder, files, library, relative=relative)
        con.execute(_store_info(identity, files))
        copy = {"content": zlib.compress(content, 1)}
        con.execute(query_sql("catalog", "store_manifest"), copy)
        con.commit()


def _to_be_filled(
    target: Path, folder: StoreFolder, *, relative: bool
) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """Open a catalog for writing, in a separate engine if it needs its own configuration."""
    if folder.local and not relative:
        return scratch(target, f"STORAGE_VERSION {sqltext.literal(STORAGE_VERSION)}")
    # The engine opens the files when it creates a view.
    found_from = {"file_search_path": str(folder.local)} if relative else {}
    return duckdb.connect(str(target), config=CONFIG | found_from)


def put_tables(
    con: duckdb.DuckDBPyConnection,
    folder: StoreFolder,
    files: StoredFiles,
    library: Library,
    *,
    relative: bool = False,
) -> None:
    """Create the tables of a store below the views of a template.

    Args:
        con: A copy of the template, in a transaction.
        folder: The store.
        files: The readable files of the store.
        library: Tables, macros and analyses.
        relative: Whether views name files relative to the store instead of by absolute path.
    """
    tables = {name: files.parts(name) for name in stored_columns()}
    if filesystem := folder.filesystem():
        from hta_sql.store.catalog.remote_binding import known_columns  # noqa: PLC0415 - imports fsspec

        kept = materialized_files(files.manifest, library)
        con.register_filesystem(known_columns(con, filesystem, [*tables.values(), kept]))
    for name, parts in tables.items():
        if located := parts if relative else [part.below(folder.root) for part in parts]:
            con.execute(sqltext.parquet_view(name, stored_columns()[name], located))
    # Stored as tables: 1,600 ranks in a view of constants cost each client 34 ms at opening.
    for name, rows in scope_rows(files).items():
        select = sqltext.values(SCOPE_TABLES[name], rows)
        for statement in sqltext.replace_view_by_table(f"stored.{name}", select):
            con.execute(statement)
    above = "" if relative else f"{folder.root}/"
    for statement in materialized_views(files.manifest, library, above):
        con.execute(statement)


@contextmanager
def open_for_computing(
    target: Path, folder: StoreFolder, manifest: Manifest, library: Library, limits: Config
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a temporary catalog, without an identity, in which derived tables are computed.

    Args:
        target: Path of the temporary catalog.
        folder: The store.
        manifest: Manifest of the readable part of the store.
        library: Tables, macros and analyses.
        limits: Settings of the engine.
    """
    shutil.copyfile(template(library), target)
    with duckdb.connect(str(target), config=CONFIG | limits) as con:
        con.begin()
        put_tables(con, folder, stored_files(manifest, folder), library)
        con.commit()
        discard_at_end(con)
        if folder.local:
            yield con
            return
    # The file system that is used for binding serves only columns, not rows.
    with duckdb.connect(str(target), config=CONFIG | limits) as con:
        con.register_filesystem(folder.filesystem())
        yield con


def _store_info(identity: Identity, files: StoredFiles) -> str:
    """Return the SQL of the view with the catalog's identity, versions and excluded runs."""
    values = {
        **asdict(identity),
        "hta_sql_version": __version__,
        "writer": files.manifest.writer,
        "left_out": ", ".join(files.left_out),
        "lost": ", ".join(sorted(map(repr, files.lost))),
    }
    columns = dict.fromkeys(values, "VARCHAR")
    return sqltext.values_view("stored.store_info", columns, [list(values.values())])
