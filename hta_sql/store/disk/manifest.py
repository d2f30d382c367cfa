"""What is in a store: the list of its Parquet files, replaced in one atomic step.

Readers see the manifest of before or of after, never anything between. The
files that it names are immutable; files that no manifest names are leftovers
of a killed ingest and are removed by the next one.
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
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.integrity import CHECKSUM, is_damaged, validated, with_checksum
from hta_sql.store.disk.run_names import first_capture
from hta_sql.traces.names import path_of

MANIFEST = "manifest.json"
CATALOG = "catalog.duckdb"
RELATIVE_CATALOG = "catalog_relative.duckdb"
"""For clients that see the store under another path: its views name files relative to the store,
found from the working directory or through the engine's ``file_search_path``."""
TABLES = "tables"
SHARDS = "shards"
FORMAT = "hta_sql store"
SCHEMA_VERSION = 2

RANKS = range(-(1 << 31), 1 << 31)
"""What a rank may be: its column is an INTEGER in every table."""

AGAIN = "Ingest the traces again, into a new store: hta-sql ingest TRACES -o STORE"
UPGRADE = "A newer hta_sql wrote it: upgrade with pip install --upgrade hta-sql."

Store = str | os.PathLike[str] | StoreFolder

FROM_PATH = {"run": "VARCHAR", "rank": "INTEGER"}
"""Columns that the path of a file says, whatever is inside."""


@dataclass(frozen=True)
class Fingerprint:
    """Tells whether a source file is the one that was ingested."""

    size: int
    mtime_ns: int
    content: str
    """Hash of its first and last bytes, or the ETag where an object storage gives one."""


@dataclass(frozen=True)
class RankEntry:
    """One rank of one run: where it came from and the files that hold it."""

    run: str
    rank: int
    source: str
    fingerprint: Fingerprint
    rank_source: str
    event_count: int
    quarantined: int
    start_ns: int | None
    """First event; Unix time where the trace has a base time; None without events."""
    step_names: list[str]
    options: dict[str, Any]
    files: dict[str, dict[str, Any]]
    """table ─▶ {"path": relative to the store, "rows": count, "bytes": size, "sha256": of its content}"""
    schema: str
    """Digest of the columns of all tables as they were written; see :attr:`Manifest.schemas`."""
    facts: dict[str, Any]
    """What the view ``runs`` shows of it: the columns of sql/readers/rank_facts.sql."""
    process: str | None = None
    """What wrote the trace and when it had ended; only of traces that do not state their rank."""
    end_ns: int | None = None
    ingested_ns: int | None = None
    """When it was read, as Unix time; None if that is not recorded."""
    span: int = 0
    """Which recording of the rank: of several that are one run, in order of time."""

    @property
    def path(self) -> str:
        """Path of the trace; ``source`` is its text, see :func:`hta_sql.traces.names.path_text`."""
        return path_of(self.source)


@dataclass(frozen=True)
class MaterializedTable:
    """A derived table or an answer of one run, as it was computed."""

    table: str
    run: str
    key: str
    """Names the SQL that computed it and the files that this read; see store/catalog/materialized_tables.py."""
    path: str | None
    """Relative to the store; None where it has no rows, or is too large to keep unasked."""
    rows: int
    bytes: int = 0
    sha256: str | None = None
    """Of its content; None without a file."""

    @property
    def is_left_out(self) -> bool:
        """Say whether it was found to be too large; views compute it."""
        return self.path is None and self.rows > 0


@dataclass(frozen=True)
class Manifest:
    """Everything that a store holds."""

    entries: list[RankEntry] = field(default_factory=list)
    writer: str = __version__
    published: dict[str, str] = field(default_factory=dict)
    """Shard ─▶ digest of its manifest, for those that were merged into this one."""
    schemas: dict[str, Columns] = field(default_factory=dict)
    """Digest ─▶ the columns that the files of its entries have."""
    materialized: list[MaterializedTable] = field(default_factory=list)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    """Run ─▶ what its users say of it: tag ─▶ value."""
    aside: list[RankEntry] = field(default_factory=list)
    """Ranks whose files were found damaged: their runs are left out until they are read again."""

    def with_entries(self, new: list[RankEntry]) -> Manifest:
        """Add entries; an entry of the same run, rank and span is replaced.

        So is that of the same file in another capture of the run: spans that were runs of their own
        and are one now, or the other way round. What was computed from all ranks of their runs goes.
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
        aside = [
            entry
            for entry in self.aside
            if in_order(entry) not in replaced and _in_captures(entry) not in replaced
        ]
        return replace(self, entries=entries, materialized=still, aside=aside, writer=__version__)

    def set_aside(self, damaged: Collection[RankEntry]) -> Manifest:
        """Take ranks out of their runs, and remember what they were."""
        named = set(map(in_order, damaged))
        entries = [entry for entry in self.entries if in_order(entry) not in named]
        runs = {entry.run for entry in damaged}
        kept = [one for one in self.materialized if one.run not in runs]
        return replace(self, entries=entries, materialized=kept, aside=[*self.aside, *damaged])

    def aside_runs(self) -> set[str]:
        """Collect the runs that lack ranks which were set aside."""
        return {entry.run for entry in self.aside}

    def paths(self, table: str) -> list[str]:
        """List the files of a table, relative to the store, in order of run and rank."""
        return [entry.files[table]["path"] for entry in self.entries if table in entry.files]

    def named_files(self) -> set[str]:
        """Collect all files, relative to the store."""
        entries = (*self.entries, *self.aside)
        files = {file["path"] for entry in entries for file in entry.files.values()}
        return files | {kept.path for kept in self.materialized if kept.path}

    def without(self, runs: Collection[str]) -> Manifest:
        """Leave runs out, with what was computed of them."""
        entries = [entry for entry in self.entries if entry.run not in runs]
        aside = [entry for entry in self.aside if entry.run not in runs]
        kept = [one for one in self.materialized if one.run not in runs]
        return replace(self, entries=entries, materialized=kept, aside=aside)

    def without_materialized(self, paths: Collection[str]) -> Manifest:
        """Leave out what was computed: that with these files."""
        return replace(
            self, materialized=[one for one in self.materialized if one.path not in paths]
        )

    def with_tags(self, runs: Iterable[str], tags: Mapping[str, str]) -> Manifest:
        """Add tags to runs; the other tags that they have stay, and an empty value takes one away."""
        changed = dict(self.tags)
        for run in runs:
            values = {**changed.pop(run, {}), **tags}
            if left := {tag: value for tag, value in sorted(values.items()) if value}:
                changed[run] = left
        return replace(self, tags=dict(sorted(changed.items())))

    def runs(self) -> list[str]:
        """List the runs."""
        return sorted({entry.run for entry in self.entries})


def in_order(entry: RankEntry) -> tuple[str, int, int]:
    """Say what an entry is of, which is the order of entries, too."""
    return entry.run, entry.rank, entry.span


def _in_captures(entry: RankEntry) -> tuple[str, int, str]:
    """Say what an entry is of, whichever capture or span of its run."""
    return first_capture(entry.run), entry.rank, entry.source


def read_manifest(store: Store) -> Manifest:
    """Read the manifest of a store.

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreVersionError: It was written by an incompatible version.
    """
    folder = store_folder(store)
    return parse_manifest(manifest_bytes(folder), folder)


def manifest_or_empty(folder: StoreFolder) -> Manifest:
    """Read the manifest; a store that is not there yet is an empty one."""
    try:
        return read_manifest(folder)
    except StoreNotFoundError:
        return Manifest()


def manifest_bytes(folder: StoreFolder) -> bytes:
    """Read the manifest without looking into it.

    Raises:
        StoreNotFoundError: There is none.
    """
    try:
        return folder.read(MANIFEST)
    except (FileNotFoundError, NotADirectoryError) as error:
        hint = f"Make one with: hta-sql ingest TRACES -o {folder.root}"
        if os.path.exists(folder.root):  # noqa: PTH110 - a path or a URL
            # Most likely the traces themselves: a store is not to be mixed with them.
            hint = f"Make one of the traces in it with: hta-sql ingest {folder.root} -o STORE"
        if folder.files(SHARDS):
            hint = f"It holds shards that nobody has put together: hta-sql publish {folder.root}"
        if folder.sizes([CATALOG]):
            hint = f"Its catalog may have a copy of it: hta-sql repair {folder.root}"
        raise StoreNotFoundError(
            f"No store at {folder.root!r}: it has no {MANIFEST}. {hint}"
        ) from error


def digest_of(content: bytes) -> str:
    """Name a content; a catalog carries the digest of the manifest that it was built from."""
    return hashlib.sha256(content).hexdigest()


def parse_manifest(content: bytes, folder: StoreFolder) -> Manifest:
    """Read what a manifest says.

    Raises:
        StoreDamagedError: It is not what was written.
        StoreVersionError: It was written by an incompatible version, or is none.
    """
    path = folder.path(MANIFEST)
    try:
        values = json.loads(content)
        is_older = CHECKSUM not in values and values["schema_version"] != SCHEMA_VERSION
        if is_damaged(content, values) and not is_older:
            raise StoreDamagedError(_damaged(folder, "it has another checksum than was written"))
        if values["format"] != FORMAT:
            raise StoreVersionError(f"{path!r} is not the manifest of an hta_sql store.")
        version = values["schema_version"]
        if version == SCHEMA_VERSION:
            entries = [entry_from(entry) for entry in values["entries"]]
            published, schemas = values.get("published", {}), values.get("schemas", {})
            kept = [validated(MaterializedTable(**kept)) for kept in values.get("materialized", ())]
            tags = values.get("tags", {})
            aside = [entry_from(entry) for entry in values.get("aside", ())]
            return validated(
                Manifest(entries, values["writer"], published, schemas, kept, tags, aside)
            )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise StoreDamagedError(_damaged(folder, str(error))) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreVersionError(
            f"{path!r} is not a manifest that this hta_sql ({__version__}) can read: {error!r}. "
            f"{AGAIN}"
        ) from error
    reads = f"this hta_sql ({__version__}) reads version {SCHEMA_VERSION}"
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise StoreVersionError(f"{folder.root!r} has schema version {version}, {reads}. {UPGRADE}")
    raise StoreVersionError(
        f"{folder.root!r} has schema version {version} but {reads}: ingest the traces again, into a "
        "new store, with hta-sql ingest TRACES -o STORE."
    )


def _damaged(folder: StoreFolder, how: str) -> str:
    return f"{folder.path(MANIFEST)!r} is damaged: {how}. To mend it: hta-sql repair {folder.root}"


def is_newer_version(version: str) -> bool:
    """Say whether a version of hta_sql came after this one; what is no version did not."""

    def numbers(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text.partition("+")[0])]

    return numbers(version) > numbers(__version__)


def entry_from(values: dict[str, Any]) -> RankEntry:
    """Turn what JSON holds back into an entry.

    Raises:
        TypeError: A value is of another type than is written.
        KeyError: One is missing.
    """
    content = validated(Fingerprint(**values["fingerprint"]))
    entry = validated(RankEntry(**{**values, "fingerprint": content}))
    for file in entry.files.values():
        kinds = [type(file[key]) for key in ("path", "rows", "bytes", "sha256")]
        if kinds != [str, int, int, str]:
            raise TypeError(f"a file is {file}")
    if entry.rank not in RANKS:
        raise TypeError(f"rank is {entry.rank}")
    return entry


def manifest_content(manifest: Manifest) -> bytes:
    """Write down what a store holds."""
    schemas = {**manifest.schemas, columns_digest(): stored_columns()}
    entries = (*manifest.entries, *manifest.aside)
    used = sorted({entry.schema for entry in entries} & schemas.keys())
    content = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "writer": manifest.writer,
        "published": manifest.published,
        "schemas": {digest: schemas[digest] for digest in used},
        "materialized": manifest.materialized,
        "tags": manifest.tags,
        "entries": manifest.entries,
        "aside": manifest.aside,
    }
    return with_checksum(content)
