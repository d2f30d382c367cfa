"""Verifies the content of the files that a query reads against the manifest.

Checksums of small files, and the origins of larger materialized files, are checked while the engine
computes. Each file is checked once per process, until its size or modification time changes. Large
files are hashed only if the store was opened with ``verify``.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from hta_sql.errors import HtaSqlError, StoreError
from hta_sql.library.objects import Library, SqlObject
from hta_sql.machine import cpu_count
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.integrity import file_digest
from hta_sql.store.disk.manifest import Manifest
from hta_sql.store.disk.origins import names_other_origin, origin_of
from hta_sql.store.disk.size_check import SizeCheck

SMALL_BYTES = 1 << 20
"""Files up to this size are checked at the first query that reads them (at most 2 ms of CPU)."""

MOST_BYTES = 64 << 20
"""Total size of small files [bytes] above which only those of runs named in the query are checked.

For ``WHERE run = 'name'`` the engine reads no other runs, and a store may have thousands of runs.
"""


class Reads(NamedTuple):
    """The objects, runs and ranks that a query may read."""

    names: frozenset[str]
    """Names of analyses, macros and tables."""
    runs: frozenset[str] | None = None
    """Runs that the query may read; None for all."""
    ranks: frozenset[int] | None = None
    mentioned: frozenset[str] = frozenset()
    """Runs whose names occur in the query text or in its bound values."""


class _Written(NamedTuple):
    """A file as the manifest describes it."""

    path: str
    run: str
    size: int
    sha256: str
    origin: str | None = None


class FileCheck(SizeCheck):
    """Checks the sizes of all files of a store, and the content of files that queries read.

    Args:
        folder: The store.
        library: Tables, macros and analyses, used to find the tables that a query reads.
        lost: Runs that are already excluded.
        broken: Materialized files that are already excluded.
        verify: Check the content of files of every size, including files at a URL.
    """

    def __init__(
        self,
        folder: StoreFolder,
        library: Library,
        lost: Collection[str] = (),
        broken: Collection[str] = (),
        *,
        verify: bool = False,
    ) -> None:
        super().__init__(folder, lost, broken)
        if verify and not folder.local:
            self._thread.start()
        self._library, self._verify = library, verify
        self._lock = threading.Lock()
        self._begun: set[Reads] = set()
        self._comparing: list[threading.Thread] = []
        self._compared: set[str] = set()
        self._changed: set[str] = set()
        self._failure: StoreError | None = None

    def begin(self, reads: Reads) -> None:
        """Start a thread that checks the files a query reads; :meth:`wrong` waits for it."""
        if not (self._folder.local or self._verify):
            return
        with self._lock:
            if reads not in self._begun:
                self._begun.add(reads)
                thread = threading.Thread(target=self._compare, args=(reads,), daemon=True)
                thread.start()
                self._comparing.append(thread)

    def wrong(self) -> set[str]:
        """Wait for all checks that were started; return the files that differ from the manifest.

        Raises:
            StoreError: ``verify`` was requested, but files cannot be read.
        """
        for thread in list(self._comparing):
            thread.join()
        with self._lock:
            self._comparing = [thread for thread in self._comparing if thread.is_alive()]
        if self._failure:
            raise self._failure
        return super().wrong() | self._changed

    def _compare(self, reads: Reads) -> None:
        super().wrong()  # reads the manifest
        try:
            found = dict.fromkeys(self._read_by(reads))  # ranks share files
            files = [file for file in found if file.path not in self._compared]
            if (
                not self._verify
                and sum(f.size for f in files if f.size <= SMALL_BYTES) > MOST_BYTES
            ):
                mentioned = reads.mentioned
                files = [f for f in files if not mentioned or f.run in mentioned]
            check = partial(_is_whole, self._folder, verify=self._verify)
            with ThreadPoolExecutor(cpu_count()) as pool:
                are_whole = list(pool.map(check, files))
        except (HtaSqlError, LookupError, TypeError, AttributeError, RuntimeError) as error:
            # The manifest or the object storage is unreadable, or the process is exiting. The query
            # reports the error.
            if self._verify:
                self._failure = StoreError(f"{self._folder.root!r} cannot be verified: {error}")
        else:
            self._compared.update(file.path for file in files)
            self._changed.update(
                file.path for file, is_whole in zip(files, are_whole, strict=True) if not is_whole
            )

    def _read_by(self, reads: Reads) -> Iterator[_Written]:
        """List the files that a query may read, except those found missing or truncated."""
        lost, broken = self._without
        kept = [
            one
            for one in self._manifest.get("materialized", ())
            if one["path"] not in broken and _is_in(reads.runs, one["run"])
        ]
        entries = [
            entry
            for entry in self._manifest["entries"]
            if entry["run"] not in lost
            and _is_in(reads.runs, entry["run"])
            and _is_in(reads.ranks, entry["rank"])
        ]
        runs = {entry["run"] for entry in entries}
        of_materialized: dict[str, set[str]] = {}
        for one in kept:
            if one["path"] or not one["rows"]:
                of_materialized.setdefault(one["table"], set()).add(one["run"])
        whole = {table for table, found in of_materialized.items() if found >= runs}
        tables = self._library.tables_read(reads.names, whole)
        for one in kept:
            table, run, path = one["table"], one["run"], one["path"]
            if path and table in tables:
                origin = origin_of(table, run, one["key"])
                yield _Written(path, run, one["bytes"], one["sha256"], origin)
        for entry in entries:
            for table in tables & entry["files"].keys():
                file = entry["files"][table]
                yield _Written(file["path"], entry["run"], file["bytes"], file["sha256"])


def _is_whole(folder: StoreFolder, file: _Written, *, verify: bool) -> bool:
    local = folder.local
    try:
        if verify or file.size <= SMALL_BYTES:
            if local is None:
                return folder.digest(file.path) == file.sha256
            found = (local / file.path).stat()
            return _digest(local / file.path, found.st_size, found.st_mtime_ns) == file.sha256
        return not (local and file.origin and names_other_origin(local / file.path, file.origin))
    except FileNotFoundError:
        return True  # the engine opens the file as well, and reports it
    except OSError as error:
        if verify and not local:
            raise StoreError(
                f"{folder.path(file.path)!r} currently cannot be read: {error}"
            ) from error
        return not verify


@lru_cache(1 << 16)
def _digest(path: Path, size: int, changed_ns: int) -> str:  # noqa: ARG001 - part of the cache key
    """Compute the checksum of a file, cached until its size or modification time changes."""
    return file_digest(path)


def changed_files(folder: StoreFolder, manifest: Manifest) -> list[str]:
    """List the small rank files whose content differs from the manifest; always empty for a URL."""
    written = dict.fromkeys(
        _Written(file["path"], entry.run, file["bytes"], file["sha256"])
        for entry in manifest.entries
        for file in entry.files.values()
    )
    check = partial(_is_whole, folder, verify=False)
    return [file.path for file in written if folder.local and not check(file)]


def _is_in(wanted: Collection[object] | None, value: object) -> bool:
    return wanted is None or value in wanted


def reads_of_analysis(
    library: Library, analysis: SqlObject, values: Mapping[str, Any], *, is_kept: bool = False
) -> Reads:
    """Describe the files that an analysis reads: only its materialized answer, or its tables."""
    name = analysis.base_name if is_kept else analysis.name
    # Derived tables hold the rows of all ranks of a run in one file.
    ranks = None if library.reads_derived(analysis) else values.get("ranks")
    return reads_of([name], values.get("runs"), ranks)


def reads_of_query(
    library: Library, query: str, values: Mapping[str, Any] | list[Any] | None, runs: Iterable[str]
) -> Reads:
    """Describe the files that a query reads, as far as its text shows.

    Args:
        library: Tables, macros and analyses.
        query: Text of the query.
        values: Values bound to the parameters of the query.
        runs: Runs of the store.
    """
    text = f"{query} {values}"
    mentioned = frozenset(run for run in runs if run in text)
    return reads_of(library.names_in(query))._replace(mentioned=mentioned)


def reads_of(
    names: Iterable[str],
    runs: Iterable[str] | None = None,
    ranks: Iterable[int] | None = None,
) -> Reads:
    """Describe the files that a query may read.

    Args:
        names: Analyses, macros and tables.
        runs: Runs that the query is restricted to; None: all.
        ranks: Ranks that the query is restricted to; None: all.
    """
    return Reads(
        frozenset(names),
        None if runs is None else frozenset(runs),
        None if ranks is None else frozenset(ranks),
    )
