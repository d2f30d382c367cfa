"""Hashes the small files of an open store once per process, and reports those that have changed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from hta_sql.errors import StoreError
from hta_sql.store.disk.digests import file_digest
from hta_sql.store.disk.file_checks import Expected, Fault, content_fault
from hta_sql.store.disk.folder import StoreFolder

SMALL_BYTES = 1 << 20
"""Files up to this size are hashed (at most 2 ms of CPU each)."""

MOST_BYTES = 64 << 20
"""Total size of the small files of a store that are hashed [bytes], in the order of the manifest."""


class Checksums:
    """Compares files with their checksums, in one thread that starts with the first query.

    Args:
        folder: The store.
        files: The files that queries may read.
        verify: Hash files of every size, also at a URL; default: small local files.
    """

    def __init__(
        self, folder: StoreFolder, files: Iterable[Expected], *, verify: bool = False
    ) -> None:
        self._folder, self._verify = folder, verify
        if not verify:
            files = _small(files) if folder.local else ()
        self._files = list(files)
        self._faults: list[Fault] = []
        self._failure: Exception | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, unless it was started before."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._compare, daemon=True)
                self._thread.start()

    def faults(self) -> list[Fault]:
        """Wait for the thread; return the files whose content differs from the manifest.

        Raises:
            StoreError: ``verify`` was requested, but files cannot be read.
        """
        self.start()
        if self._thread:
            self._thread.join()
        if self._failure and self._verify:
            raise StoreError(f"{self._folder.root!r} cannot be verified: {self._failure}")
        return self._faults

    def _compare(self) -> None:
        try:
            found = (content_fault(self._folder, file, self._digest) for file in self._files)
            # A file that is missing was removed by another process; the engine reports it.
            self._faults = [fault for fault in found if fault and fault.kind == "content"]
        except (OSError, StoreError) as error:
            self._failure = error  # without verify, the engine reports it as well

    def _digest(self, path: str) -> str:
        if self._folder.local is None:
            return self._folder.digest(path)
        file = f"{self._folder.root}/{path}"
        found = os.stat(file)  # noqa: PTH116 - called for up to 24,000 files
        return _digest(file, found.st_size, found.st_mtime_ns)


def _small(files: Iterable[Expected]) -> Iterator[Expected]:
    total = 0
    for file in files:
        if file.bytes <= SMALL_BYTES:
            total += file.bytes
            if total > MOST_BYTES:
                return
            yield file


@lru_cache(1 << 16)
def _digest(path: str, size: int, changed_ns: int) -> str:  # noqa: ARG001 - part of the cache key
    """Compute the checksum of a file, cached until its size or modification time changes."""
    return file_digest(Path(path))
