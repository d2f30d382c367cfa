"""The manifest of a store: the list of its Parquet files, replaced atomically.

Readers see either the previous manifest or the new one. The files that it references are immutable.
Files that no manifest references were orphaned by a killed ingest; the next ingest deletes them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hta_sql._version import __version__
from hta_sql.errors import StoreDamagedError, StoreNotFoundError, StoreVersionError
from hta_sql.library.sql_files import Columns, columns_digest, stored_columns
from hta_sql.store.disk.digests import CHECKSUM, is_damaged, with_checksum
from hta_sql.store.disk.field_types import validated
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.run_names import first_capture
from hta_sql.traces.names import path_of

MANIFEST = "manifest.json"
CATALOG = "catalog.duckdb"
RELATIVE_CATALOG = "catalog_relative.duckdb"
"""Catalog for clients that see the store under another path.

Its views name files relative to the store. DuckDB finds them from the working directory or through
``file_search_path``.
"""
TABLES = "tables"
SHARDS = "shards"
FORMAT = "hta_sql store"
SCHEMA_VERSION = 2

RANKS = range(-(1 << 31), 1 << 31)
"""Valid ranks: the column is an INTEGER in every table."""

AGAIN = "Ingest the traces again, into a new store: hta-sql ingest TRACES -o STORE"
UPGRADE = "A newer version of hta_sql wrote the store: upgrade with pip install --upgrade hta-sql."

Store = str | os.PathLike[str] | StoreFolder

FROM_PATH = {"run": "VARCHAR", "rank": "INTEGER"}
"""Columns whose values come from the path of a file, not from its content; see :data:`SHARED`."""

SHARED = "ranks"
"""Folder of files that several ranks of a run share; in these files the rank is a stored column."""


@dataclass(frozen=True)
class Fingerprint:
    """Identifies the version of a source file that was ingested."""

    size: int
    mtime_ns: int
    content: str
    """Hash of the first and last bytes, or the ETag in object storage."""


@dataclass(frozen=True)
class RankEntry:
    """One rank of one run: its source and its Parquet files."""

    run: str
    rank: int
    source: str
    fingerprint: Fingerprint
    rank_source: str
    event_count: int
    quarantined: int
    start_ns: int | None
    """Time of the first event, as Unix time if the trace has a base time; None without events."""
    step_names: list[str]
    options: dict[str, Any]
    files: dict[str, dict[str, Any]]
    """table ─▶ {"path": relative to the store, "rows": of this rank, "file_rows": of the whole file,
    "bytes": size of the file, "sha256": checksum of the file}.

    Ranks that were read together share files. If a rank was read again, its entry references a new
    file, and its rows in the old file are no longer part of the store.
    """
    schema: str
    """Digest of the columns of all tables when they were written; see :attr:`Manifest.schemas`."""
    facts: dict[str, Any]
    """Columns that the view ``runs`` shows, as defined in sql/queries/rank_facts.sql."""
    process: str | None = None
    """Process that wrote the trace. Recorded, like ``end_ns``, only if the trace states no rank."""
    end_ns: int | None = None
    ingested_ns: int | None = None
    """Time when the trace was ingested, as Unix time; None if not recorded."""
    span: int = 0
    """Index of this recording, in time order, if a run has several recordings of the rank."""
    role: str | None = None
    """Role of the process in a job with several roles."""
    role_source: str | None = None
    """Source of the role: given, distributedInfo or names."""
    first_rank: int = 0
    """Offset that was added to the rank, if several roles number their ranks from 0."""
    pid: int | None = None
    """Process ID of the host events; None if not known before the trace was read."""

    @property
    def path(self) -> str:
        """Path of the trace, decoded from ``source``; see ``hta_sql.traces.names.path_text``."""
        return path_of(self.source)


@dataclass(frozen=True)
class MaterializedTable:
    """A materialized derived table or answer of one run."""

    table: str
    run: str
    key: str
    """Hash of the SQL and of its input files; see store/catalog/materialized_tables.py."""
    path: str | None
    """Path relative to the store; None if there are no rows, or too many to store by default."""
    rows: int
    bytes: int = 0
    sha256: str | None = None
    """Checksum of the file; None without a file."""

    @property
    def is_left_out(self) -> bool:
        """Return whether the table was too large to materialize, so that views compute it."""
        return self.path is None and self.rows > 0


@dataclass(frozen=True)
class Manifest:
    """The complete content of a store."""

    entries: list[RankEntry] = field(default_factory=list)
    writer: str = __version__
    published: dict[str, str] = field(default_factory=dict)
    """Shard ─▶ digest of its manifest, for shards merged into this store."""
    schemas: dict[str, Columns] = field(default_factory=dict)
    """Digest ─▶ columns of the entries' files."""
    materialized: list[MaterializedTable] = field(default_factory=list)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    """Run ─▶ the tags set by users: tag ─▶ value."""

    def with_entries(self, new: list[RankEntry]) -> Manifest:
        """Add entries; an entry with the same run, rank and span is replaced.

        An entry of the same source file in another capture of the run is replaced too. This happens
        when spans that were separate runs are joined into one, or vice versa. Materialized tables
        of the changed runs are dropped.
        """
        replaced = set(map(in_order, new)) | set(map(_in_captures, new))
        kept: list[RankEntry] = []
        runs = {entry.run for entry in new}
        for entry in self.entries:
            if in_order(entry) in replaced or _in_captures(entry) in replaced:
                runs.add(entry.run)
            else:
                kept.append(entry)
        entries = sorted([*kept, *new], key=in_order)
        still = [table for table in self.materialized if table.run not in runs]
        return replace(self, entries=entries, materialized=still, writer=__version__)

    def named_files(self) -> set[str]:
        """Return all files that the manifest references, relative to the store."""
        return file_paths(self.entries) | {kept.path for kept in self.materialized if kept.path}

    def without(self, runs: Collection[str]) -> Manifest:
        """Remove runs and their materialized tables."""
        entries = [entry for entry in self.entries if entry.run not in runs]
        kept = [one for one in self.materialized if one.run not in runs]
        return replace(self, entries=entries, materialized=kept)

    def without_materialized(self, paths: Collection[str]) -> Manifest:
        """Remove the materialized tables stored in these files."""
        return replace(
            self, materialized=[one for one in self.materialized if one.path not in paths]
        )

    def without_files(self, paths: Collection[str]) -> Manifest:
        """Remove the runs of which ranks need these files, and the materialized tables in them."""
        lost = {e.run for e in self.entries for f in e.files.values() if f["path"] in paths}
        return self.without(lost).without_materialized(paths)

    def with_tags(self, runs: Iterable[str], tags: Mapping[str, str]) -> Manifest:
        """Add tags to runs. Other tags of the runs remain; an empty value removes a tag."""
        changed = dict(self.tags)
        for run in runs:
            values = {**changed.pop(run, {}), **tags}
            if left := {tag: value for tag, value in sorted(values.items()) if value}:
                changed[run] = left
        return replace(self, tags=dict(sorted(changed.items())))

    def runs(self) -> list[str]:
        """List the runs."""
        return sorted({entry.run for entry in self.entries})


def is_shared(path: str) -> bool:
    """Return whether a file contains several ranks of a run."""
    return path.split("/")[-2:-1] == [SHARED]


def file_paths(entries: Iterable[RankEntry]) -> set[str]:
    """Return the files of entries, relative to the store."""
    return {file["path"] for entry in entries for file in entry.files.values()}


def file_bytes(entries: Iterable[RankEntry]) -> int:
    """Return the total size of the files of entries [bytes]; a shared file counts once."""
    files = (file for entry in entries for file in entry.files.values())
    return sum({file["path"]: file["bytes"] for file in files}.values())


def in_order(entry: RankEntry) -> tuple[str, int, int]:
    """Return the identity (run, rank, span) of an entry, which is also the sort key of entries."""
    return entry.run, entry.rank, entry.span


def _in_captures(entry: RankEntry) -> tuple[str, int, str]:
    """Return the identity of an entry regardless of its capture or span: run, rank, source."""
    return first_capture(entry.run), entry.rank, entry.source


def read_manifest(store: Store) -> Manifest:
    """Read the manifest of a store.

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreVersionError: The manifest was written by an incompatible version.
    """
    folder = store_folder(store)
    return parse_manifest(manifest_bytes(folder), folder)


def manifest_or_empty(folder: StoreFolder) -> Manifest:
    """Read the manifest of a store; return an empty manifest if the store does not exist yet."""
    try:
        return read_manifest(folder)
    except StoreNotFoundError:
        return Manifest()


def manifest_bytes(folder: StoreFolder) -> bytes:
    """Read the manifest without parsing it.

    Raises:
        StoreNotFoundError: The store has no manifest.
    """
    try:
        return folder.read(MANIFEST)
    except (FileNotFoundError, NotADirectoryError) as error:
        hint = f"Create one with: hta-sql ingest TRACES -o {folder.root}"
        if os.path.exists(folder.root):  # noqa: PTH110 - may be a URL
            # Most likely a folder of traces: a store must not be mixed with them.
            hint = f"Create one from its traces with: hta-sql ingest {folder.root} -o STORE"
        if folder.files(SHARDS):
            hint = f"It contains unpublished shards; publish them: hta-sql publish {folder.root}"
        if folder.sizes([CATALOG]):
            hint = AGAIN
        raise StoreNotFoundError(
            f"No store at {folder.root!r}: it has no {MANIFEST}. {hint}"
        ) from error


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of content.

    A catalog records the digest of the manifest from which it was built.
    """
    return hashlib.sha256(content).hexdigest()


def parse_manifest(content: bytes, folder: StoreFolder) -> Manifest:
    """Parse a manifest.

    Raises:
        StoreDamagedError: The content differs from its checksum.
        StoreVersionError: The content was written by an incompatible version, or is not a manifest.
    """
    path = folder.path(MANIFEST)
    try:
        values = json.loads(content)
        is_older = CHECKSUM not in values and values["schema_version"] != SCHEMA_VERSION
        if is_damaged(content, values) and not is_older:
            raise StoreDamagedError(_damaged(folder, "its content does not match its checksum"))
        if values["format"] != FORMAT:
            raise StoreVersionError(f"{path!r} is not the manifest of an hta_sql store.")
        version = values["schema_version"]
        if version == SCHEMA_VERSION:
            entries = [entry_from(entry) for entry in values["entries"]]
            published, schemas = values.get("published", {}), values.get("schemas", {})
            kept = [validated(MaterializedTable(**kept)) for kept in values.get("materialized", ())]
            tags = values.get("tags", {})
            return validated(Manifest(entries, values["writer"], published, schemas, kept, tags))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise StoreDamagedError(_damaged(folder, str(error))) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreVersionError(
            f"{path!r} is not a manifest that this version of hta_sql ({__version__}) can read: {error!r}. "
            f"{AGAIN}"
        ) from error
    reads = f"this version of hta_sql ({__version__}) reads schema version {SCHEMA_VERSION}"
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise StoreVersionError(
            f"{folder.root!r} has schema version {version}, but {reads}. {UPGRADE}"
        )
    raise StoreVersionError(
        f"{folder.root!r} has schema version {version}, but {reads}. Ingest the traces again, into a "
        "new store: hta-sql ingest TRACES -o STORE."
    )


def _damaged(folder: StoreFolder, how: str) -> str:
    return f"{folder.path(MANIFEST)!r} is damaged: {how}. {AGAIN}"


def is_newer_version(version: str) -> bool:
    """Return whether a version of hta_sql is newer than this one; False for an invalid version."""

    def numbers(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text.partition("+")[0])]

    return numbers(version) > numbers(__version__)


def entry_from(values: dict[str, Any]) -> RankEntry:
    """Create an entry from parsed JSON.

    Raises:
        TypeError: A value has the wrong type.
        KeyError: A value is missing.
    """
    content = validated(Fingerprint(**values["fingerprint"]))
    entry = validated(RankEntry(**{**values, "fingerprint": content}))
    for file in entry.files.values():
        file.setdefault("file_rows", file["rows"])
        kinds = [type(file[key]) for key in ("path", "rows", "file_rows", "bytes", "sha256")]
        if kinds != [str, int, int, int, str]:
            raise TypeError(f"a file is {file}")
    if entry.rank not in RANKS:
        raise TypeError(f"rank is {entry.rank}")
    return entry


def manifest_content(manifest: Manifest) -> bytes:
    """Serialize a manifest."""
    schemas = {**manifest.schemas, columns_digest(): stored_columns()}
    used = sorted({entry.schema for entry in manifest.entries} & schemas.keys())
    content = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "writer": manifest.writer,
        "published": manifest.published,
        "schemas": {digest: schemas[digest] for digest in used},
        "materialized": manifest.materialized,
        "tags": manifest.tags,
        "entries": manifest.entries,
    }
    return with_checksum(content)
