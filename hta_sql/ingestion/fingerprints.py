"""Fingerprints of traces, which show whether a trace has changed since it was ingested."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from hta_sql.errors import TraceError, TraceNotFoundError
from hta_sql.ingestion.roles import KnownRoles, known_roles
from hta_sql.ingestion.trace_file import TraceFile
from hta_sql.ingestion.vendors.mindspore import cluster_file, parts_of_rank
from hta_sql.library.definitions import definitions
from hta_sql.store.disk.manifest import Fingerprint, RankEntry, in_order
from hta_sql.store.disk.run_names import first_capture
from hta_sql.store.disk.spans import ARTIFACTS
from hta_sql.traces.peek import Stated, peek
from hta_sql.traces.source import located, refuse_special_file

ENDS_BYTES = 64 << 10

_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")
_FOUND_IN_FILE = {"distributedInfo": True, "file name": False, "order of names": False}
"""Source of a rank ─▶ whether the trace itself states the rank."""


def fingerprint(path: str) -> Fingerprint:
    """Return the size, the modification time and a hash of the head and tail of a file.

    If several files form one rank, the fingerprint covers all of them.

    Raises:
        TraceNotFoundError: The file does not exist.
    """
    if cluster_file(path):
        parts = [_of_file(part.path) for part in parts_of_rank(path)]
        together = hashlib.sha256("".join(part.content for part in parts).encode()).hexdigest()
        return Fingerprint(
            sum(part.size for part in parts), max(part.mtime_ns for part in parts), together
        )
    return _of_file(path)


class ChangedWhileReadError(Exception):
    """A trace changed while it was read."""


@contextmanager
def unchanged(path: str) -> Iterator[Fingerprint]:
    """Yield the fingerprint of a trace that is read in this context.

    If the file changed while it was read, this is reported instead of any defect in it.

    Raises:
        ChangedWhileReadError: The file changed while it was read.
    """
    before = fingerprint(path)
    try:
        yield before
    except (TraceError, OSError) as error:
        if _now(path) != before:
            raise ChangedWhileReadError from error
        raise
    if _now(path) != before:
        raise ChangedWhileReadError


def _now(path: str) -> Fingerprint | None:
    """Return the current fingerprint of a file, bypassing caches; None if it is missing."""
    fs, name = located(path)
    fs.invalidate_cache(name)
    try:
        return fingerprint(path)
    except TraceNotFoundError:
        return None


def _of_file(path: str) -> Fingerprint:
    fs, name = located(path)
    try:
        refuse_special_file(fs, name, path)
        info = fs.info(name)
        content = f"etag {info['ETag']}" if info.get("ETag") else _ends(fs, name, info["size"])
    except FileNotFoundError as error:
        raise TraceNotFoundError(f"Cannot open trace {path!r}: the file does not exist.") from error
    except PermissionError as error:
        raise TraceNotFoundError(f"Cannot open trace {path!r}: {error.strerror}.") from error
    size = int(info["size"])
    modified = next((info[key] for key in _TIMES if info.get(key)), 0)
    if isinstance(modified, datetime):
        modified = modified.timestamp()
    return Fingerprint(size, int(float(modified) * 1e9), content)


def _ends(fs: Any, name: str, size: int) -> str:
    digest = hashlib.sha256()
    with fs.open(name, "rb") as file:
        digest.update(file.read(ENDS_BYTES))
        if size > ENDS_BYTES:
            file.seek(max(ENDS_BYTES, size - ENDS_BYTES))
            digest.update(file.read(ENDS_BYTES))
    return digest.hexdigest()


def ingest_options(kernel_classes: str | os.PathLike[str] | None) -> dict[str, Any]:
    """Return the options that, together with the trace, determine the stored data."""
    own_rules = ""
    if kernel_classes:
        own_rules = hashlib.sha256(Path(kernel_classes).read_bytes()).hexdigest()
    return {"definitions": definitions(), "kernel_classes": own_rules}


class HasSideFiles(Protocol):
    """A trace, or the job that reads it, with the paths of side files that describe its events."""

    @property
    def captures(self) -> tuple[str, ...]:
        """Captures of the graphs that the trace replays."""

    @property
    def kernel_files(self) -> tuple[str, ...]:
        """Inductor's files about the kernels that the trace launches."""


class KnownTraces:
    """Facts in the store about trace files, so that unchanged files need not be read again."""

    def __init__(self, kernel_classes: str | os.PathLike[str] | None) -> None:
        self.options = ingest_options(kernel_classes)
        self._fingerprints: dict[str, Fingerprint] = {}
        self._by_source: dict[str, RankEntry] = {}
        self._by_path: dict[tuple[str, str], RankEntry] = {}
        self._by_rank: dict[tuple[str, int, int], RankEntry] = {}

    def learn(self, entries: Iterable[RankEntry]) -> None:
        """Add the entries of a manifest; later entries take precedence."""
        for entry in entries:
            self._by_rank[in_order(entry)] = entry
            self._by_path[first_capture(entry.run), entry.path] = entry
            if entry.rank_source in _FOUND_IN_FILE:
                self._by_source[entry.path] = entry

    def fingerprint(self, path: str) -> Fingerprint:
        """Return the fingerprint that a file had when it was first requested."""
        if path not in self._fingerprints:
            self._fingerprints[path] = fingerprint(path)
        return self._fingerprints[path]

    def look(self, path: str) -> Stated:
        """Return the facts that a trace states; for known files, only rank, process and times."""
        entry = self._by_source.get(path)
        if entry is None or entry.fingerprint != self.fingerprint(path):
            return peek(path)
        if kind := ARTIFACTS.get(entry.span):
            rank = entry.rank - entry.first_rank if kind == "dump" else None
            return Stated(rank, 0, kind=kind)
        stated = entry.rank - entry.first_rank if _FOUND_IN_FILE[entry.rank_source] else None
        start_ns = entry.start_ns or 0
        role = entry.role if entry.role_source == "distributedInfo" else None
        known = Stated(stated, start_ns, process=entry.process, end_ns=entry.end_ns)
        return known._replace(role=role, pid=entry.pid)

    def role(self, run: str, path: str) -> tuple[str | None, str | None] | None:
        """Return the role with which a trace of a run is stored, and its source.

        A role that the caller gave, or that was found in names, stays with the path even if the
        trace was recorded again. A role that the trace itself stated is returned only if the trace
        is unchanged.

        Args:
            run: Name of the first capture of the run.
            path: The trace.
        """
        entry = self._by_path.get((run, path))
        if entry is None:
            return None
        if entry.role_source == "distributedInfo" and entry.fingerprint != self.fingerprint(path):
            return None
        return entry.role, entry.role_source

    def roles(self, run: str, paths: Iterable[str]) -> KnownRoles:
        """Return the roles in the captures of a run.

        Args:
            run: Name of the first capture of the run.
            paths: The traces that are ingested.
        """
        entries = [one for one in self._by_rank.values() if first_capture(one.run) == run]
        return known_roles(entries, paths)

    def stored_as(self, file: HasSideFiles) -> dict[str, Any]:
        """Return the options that, together with the trace, determine the stored data of a rank.

        They include a digest of the side files.
        """
        paths = (*file.captures, *file.kernel_files)
        contents = "".join(self.fingerprint(path).content for path in paths)
        digest = hashlib.sha256(contents.encode()).hexdigest() if paths else ""
        return {**self.options, "captures": digest}

    def current(self, run: str, span: int, file: TraceFile) -> RankEntry | None:
        """Return the entry of a trace if it was ingested unchanged, with the current options."""
        entry = self._by_rank.get((run, file.rank, span))
        if entry and _is_same(entry, file) and entry.options == self.stored_as(file):
            with suppress(TraceNotFoundError):  # reading the trace reports it
                return entry if entry.fingerprint == self.fingerprint(file.path) else None
        return None


def _is_same(entry: RankEntry, file: TraceFile) -> bool:
    """Return whether an entry has the path and the role of a trace."""
    role = entry.role, entry.first_rank
    return entry.path == file.path and role == (file.role, file.first_rank)
