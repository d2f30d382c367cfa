"""Shard manifests: the ranks that one job of a job array has read but that are not published yet.

The job creates ``<store>/shards/<run>.<i>-of-<n>.json``, marked as incomplete, when it starts. Thus
an ingest that deletes orphaned files knows which job owns the new files. The shard manifest is
replaced after each rank, so that a killed job resumes where it stopped.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace

from hta_sql.errors import ParameterError
from hta_sql.store.disk.digests import CHECKSUM, is_damaged, with_checksum
from hta_sql.store.disk.field_types import validated
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.manifest import (
    SCHEMA_VERSION,
    SHARDS,
    TABLES,
    RankEntry,
    digest_of,
    entry_from,
    file_paths,
)

log = logging.getLogger(__name__)

FORMAT = "hta_sql shard"

_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors of parsing a file that is not a shard."""


@dataclass(frozen=True)
class Shard:
    """The i-th of n shards of a run, counted from 1."""

    run: str
    number: int
    of: int
    writer: str
    """File name prefix of the Parquet files that this job writes."""
    complete: bool = False
    entries: list[RankEntry] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    digest: str = ""
    """Digest of the shard's file."""
    tags: dict[str, str] = field(default_factory=dict)
    """Tags of the run, set by the user."""

    @property
    def name(self) -> str:
        """Name of the shard in messages and in the manifest."""
        return shard_name(self.run, self.number, self.of)

    @property
    def path(self) -> str:
        """Path of the shard's file, relative to the store."""
        return f"{SHARDS}/{self.name}.json"

    def with_entries(self, new: list[RankEntry]) -> Shard:
        """Return a copy of the shard with additional ranks."""
        return replace(self, entries=[*self.entries, *new])


def shard_name(run: str, number: int, of: int) -> str:
    """Return the name of a shard of a run."""
    return f"{run}.{number}-of-{of}"


def run_of_shard(name: str) -> str:
    """Return the run that a shard name contains."""
    return name.rpartition(".")[0]


def number_of_shard(name: str) -> int:
    """Return the number in a shard name, counted from 1."""
    return int(name.rpartition(".")[2].partition("-")[0])


def check_shard(shard: tuple[int, int]) -> tuple[int, int]:
    """Return the shard number and the number of shards if they are valid.

    Raises:
        ParameterError: The number is not between 1 and the count.
    """
    number, of = shard
    if not 1 <= number <= of:
        raise ParameterError(f"Shard {number}/{of}: shards are numbered from 1/{of} to {of}/{of}.")
    return number, of


def write_shard(folder: StoreFolder, shard: Shard) -> None:
    """Replace the file of a shard atomically."""
    content = {"format": FORMAT, "schema_version": SCHEMA_VERSION, **vars(shard)}
    del content["digest"]
    folder.replace(shard.path, with_checksum(content))


def is_complete(folder: StoreFolder, path: str) -> bool:
    """Return whether the file of a shard exists, is readable, and is marked as complete."""
    with suppress(FileNotFoundError, *_MALFORMED):
        return _parsed(folder.read(path)).complete
    return False


def read_shards(folder: StoreFolder) -> list[Shard]:
    """Read all readable shards, complete or not."""
    return shards_at(folder)[0]


def shards_at(folder: StoreFolder) -> tuple[list[Shard], dict[str, str]]:
    """Read all shards; also return the unreadable files: path ─▶ reason."""
    shards: list[Shard] = []
    damaged: dict[str, str] = {}
    for path in folder.files(SHARDS):
        name = path.rpartition("/")[2]
        if name.startswith(".") or not name.endswith(".json"):
            continue
        try:
            shards.append(_parsed(folder.read(path)))
        except FileNotFoundError:
            continue  # published and removed after the listing
        except _MALFORMED as error:
            damaged[path] = repr(error)
    return sorted(shards, key=lambda shard: (shard.run, shard.of, shard.number)), damaged


def _parsed(content: bytes) -> Shard:
    values = json.loads(content)
    if is_damaged(content, values):
        raise ValueError("its checksum does not match")
    del values[CHECKSUM]
    if (values.pop("format"), values.pop("schema_version")) != (FORMAT, SCHEMA_VERSION):
        raise ValueError("its format or schema version is not supported")
    entries = [entry_from(entry) for entry in values.pop("entries")]
    return validated(Shard(**values, entries=entries, digest=digest_of(content)))


def protected_files(folder: StoreFolder, present: list[str]) -> set[str]:
    """Return which of the present files belong to shards: published or not, running or not.

    If a shard cannot be read, its files are unknown, so all table files are protected.
    """
    shards, damaged = shards_at(folder)
    for path, why in damaged.items():
        log.warning(
            "%r is not a shard that this version can publish: %s. Other shards are not "
            "affected; run its job again. Until then, orphaned files are not deleted.",
            folder.path(path),
            why,
        )
    if damaged:
        return {path for path in present if path.startswith(f"{TABLES}/")}
    named = file_paths(entry for shard in shards for entry in shard.entries)
    writers = tuple(shard.writer for shard in shards)
    return named | {
        path
        for path in present
        if path.startswith(f"{TABLES}/")
        and path.rpartition("/")[2].removeprefix(".").startswith(writers)
    }
