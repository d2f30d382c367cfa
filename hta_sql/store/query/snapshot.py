"""A snapshot of a store that is opened at the first query, so that an ingest need not open it."""

from __future__ import annotations

import os
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

from hta_sql.library.user_analyses import user_folders
from hta_sql.machine import temporary_folder
from hta_sql.store.catalog.build import identity_with
from hta_sql.store.disk.file_checks import files_of
from hta_sql.store.disk.manifest import CATALOG, manifest_bytes, parse_manifest
from hta_sql.store.query.connection import Connection
from hta_sql.store.query.limits import UNLIMITED
from hta_sql.store.query.open_catalog import Checked, Opened
from hta_sql.store.query.trace_store import TraceStore


class _Pinned:
    """The current catalog file, held open so that it stays readable after it is replaced."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path, self.content = path, content
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def is_there(self) -> bool:
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._file))
        except OSError:
            return False

    def copied(self, folder: str) -> Path:
        """Copy the file with pread, because a forked child shares the file offset of its parent."""
        target = Path(folder, CATALOG)
        target.write_bytes(os.pread(self._file, os.fstat(self._file).st_size, 0))
        return target


class PinnedConnection(Connection):
    """Queries a snapshot of the store, although the catalog is opened only at the first query.

    Opening a catalog takes 60 to 90 ms of CPU. The catalog is opened immediately if the store is at
    a URL or there are user analyses.
    """

    _pinned: _Pinned | None = None

    def pin(self) -> None:
        """Take the snapshot."""
        local, library = self._folder.local, self._library
        if local and not library.shipped and (local / CATALOG).exists():
            self._pinned = _Pinned(local / CATALOG, manifest_bytes(self._folder))
        else:
            self.opened()

    def _open(self) -> Opened:
        pinned, self._pinned = self._pinned, None
        return (pinned and self._of(pinned)) or super()._open()

    def _of(self, pinned: _Pinned) -> Opened | None:
        """Open the snapshot; None if its catalog does not match the manifest or the library."""
        identity = identity_with(pinned.content, self._folder, self._library)
        files = Checked(files_of(parse_manifest(pinned.content, self._folder)), [])
        if pinned.is_there() and (opened := self._connected(pinned.path, identity, files)):
            return opened
        with temporary_folder() as folder:
            found = self._connected(pinned.copied(folder), identity, files)
        return replace(found, catalog=pinned.path) if found else None


class HeldStore(TraceStore):
    """A snapshot of a store, taken at construction; its catalog is opened at the first query."""

    _connects = PinnedConnection
    _connection: PinnedConnection

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        engine = {"threads": None, "memory_limit": None}
        defaults = {"safe": False, "verify": False, "limits": UNLIMITED}
        defaults["analyses"] = user_folders(None)
        self._set_up(path, {**engine, **defaults, **options})
        self._connection.pin()
