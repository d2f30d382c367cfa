"""What is in a store: the list of its Parquet files, replaced in one atomic step.

Readers see the manifest of before or of after, never anything between. The
files that it names are immutable; files that no manifest names are leftovers
of a killed ingest and are removed by the next one.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from hta_sql._version import __version__
from hta_sql.errors import StoreNotFoundError, StoreVersionError

MANIFEST = "manifest.json"
CATALOG = "catalog.duckdb"
TABLES = "tables"
FORMAT = "hta_sql store"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Fingerprint:
    """Tells whether a source file is the one that was ingested."""

    size: int
    mtime_ns: int
    sha256_of_ends: str


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
    """table ─▶ {"path": relative to the store, "rows": count, "bytes": size}"""


@dataclass(frozen=True)
class Manifest:
    """Everything that a store holds."""

    entries: list[RankEntry] = field(default_factory=list)
    writer: str = __version__

    def with_entries(self, new: list[RankEntry]) -> Manifest:
        """Add entries; an entry of the same run and rank is replaced."""
        replaced = {(entry.run, entry.rank) for entry in new}
        kept = [entry for entry in self.entries if (entry.run, entry.rank) not in replaced]
        entries = sorted([*kept, *new], key=lambda entry: (entry.run, entry.rank))
        return replace(self, entries=entries, writer=__version__)

    def entry(self, run: str, rank: int) -> RankEntry | None:
        """Find the entry of a rank."""
        return next((e for e in self.entries if (e.run, e.rank) == (run, rank)), None)

    def paths(self, table: str) -> list[str]:
        """List the files of a table, relative to the store, in order of run and rank."""
        return [entry.files[table]["path"] for entry in self.entries if table in entry.files]

    def runs(self) -> list[str]:
        """List the runs."""
        return sorted({entry.run for entry in self.entries})


def read_manifest(store: Path) -> Manifest:
    """Read the manifest of a store.

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreVersionError: It was written by an incompatible version.
    """
    path = store / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreNotFoundError(
            f"No store at {str(store)!r}: it has no {MANIFEST}. "
            f"Make one with: hta-sql ingest TRACES -o {store}"
        ) from error
    except ValueError as error:
        raise StoreVersionError(f"{str(path)!r} is not a manifest: {error}.") from error
    if content.get("format") != FORMAT:
        raise StoreVersionError(f"{str(path)!r} is not the manifest of an hta_sql store.")
    if content["schema_version"] != SCHEMA_VERSION:
        raise StoreVersionError(
            f"{str(store)!r} has schema version {content['schema_version']}, this hta_sql "
            f"({__version__}) reads version {SCHEMA_VERSION}. Ingest the traces again."
        )
    entries = [
        RankEntry(**{**entry, "fingerprint": Fingerprint(**entry["fingerprint"])})
        for entry in content["entries"]
    ]
    return Manifest(entries, content["writer"])


def write_manifest(store: Path, manifest: Manifest) -> None:
    """Replace the manifest in one step; durable before it is visible."""
    content = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "writer": manifest.writer,
        "entries": [asdict(entry) for entry in manifest.entries],
    }
    partial = store / f".{MANIFEST}.{os.getpid()}.partial"
    with partial.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(store / MANIFEST)
