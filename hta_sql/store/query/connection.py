"""The open catalog of a store, shared by many threads: each query gets its own cursor."""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import threading
import weakref
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TypeVar

import duckdb

from hta_sql.closing import Closing
from hta_sql.errors import QueryError, StoreDamagedError, StoreError
from hta_sql.library.objects import Library
from hta_sql.machine import temporary_folder
from hta_sql.store.catalog.build import Identity, built_from, identity_of, private_catalog
from hta_sql.store.catalog.damage import (
    is_of_database,
    unreadable_materialized,
    unreadable_runs,
    warn_of_changed_files,
)
from hta_sql.store.catalog.materialize import forget
from hta_sql.store.catalog.template import Config
from hta_sql.store.catalog.user_analyses import may_serve
from hta_sql.store.disk.content_check import FileCheck, Reads
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.manifest import (
    CATALOG,
    digest_of,
    manifest_bytes,
    parse_manifest,
    read_manifest,
)
from hta_sql.store.query.limits import UNLIMITED, Limits, in_time
from hta_sql.store.query.on_demand import OnDemand
from hta_sql.store.query.open_catalog import (
    Opened,
    configure,
    kept_of,
    lacks_replaced_runs,
    ranks_of,
    refreshed,
    warn_of_runs_left_out,
)
from hta_sql.store.query.sandbox import Sandbox, lock

log = logging.getLogger(__name__)

ATTEMPTS = 5
"""Number of attempts to open a store whose manifest is replaced meanwhile."""

Answer = TypeVar("Answer")
Question = Callable[[duckdb.DuckDBPyConnection], Answer]


class Connection(Closing):
    """Opens the catalog of a store at the first query, and again after a fork.

    Args:
        folder: Folder of the store.
        config: Settings of the engine.
        library: Tables, macros and analyses.
        safe: Lock the engine down, and check queries in a sandbox.
        limits: Limits of a query.
        verify: Verify all files that a query reads against their checksums.

    Attributes:
        on_demand: Materializes the derived tables that queries read.
    """

    _after_fork = False
    """Whether this process was forked while instances were open; it does not have their threads."""

    def __init__(
        self,
        folder: StoreFolder,
        config: Config,
        library: Library,
        *,
        safe: bool,
        limits: Limits = UNLIMITED,
        verify: bool = False,
    ) -> None:
        self.closed = False
        self._library = library
        self._folder = folder
        self._config = config
        self._limits = limits
        self._safe = safe
        self._verify = verify
        self._opened: Opened | None = None
        self._lock = threading.RLock()
        self._asking: dict[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection] = {}
        self._lost: frozenset[str] = frozenset()
        self._broken: frozenset[str] = frozenset()
        memory_limit = str(config["memory_limit"])
        self.on_demand = OnDemand(folder, library.base, limits.seconds, memory_limit)
        self._replaced: list[duckdb.DuckDBPyConnection] = []
        _LIVING.add(self)

    def opened(self) -> Opened:
        """Return the open catalog; open it if necessary.

        Raises:
            StoreError: The store was closed, or is open in this process with different settings.
        """
        opened = self._opened
        if opened is None:
            with self._lock:
                if self.closed:
                    raise StoreError(f"The store {self._folder.root!r} is closed; open it again.")
                opened = self._opened = self._opened or self._open()
        return opened

    def run(self, question: Question[Answer], reads: Reads | None = None) -> Answer:
        """Run a query with a cursor that no other thread uses, and close the cursor afterwards.

        If the query reads damaged files, they are excluded and the query is repeated.

        Raises:
            StoreError: The store is closed.
            QueryError: The engine rejected the query, or the query failed.
        """
        opened = self.opened()
        if reads:
            opened.files.begin(reads)
        try:
            with opened.con.cursor() as cursor:
                self._asking[cursor] = opened.con
                try:
                    with in_time(cursor, self._limits.seconds):
                        answer = question(cursor)
                finally:
                    del self._asking[cursor]
                    self._close_replaced()
        except (duckdb.Error, UnicodeDecodeError) as said:
            # A corrupt string may raise a Python error instead of an engine error.
            error = said if isinstance(said, duckdb.Error) else duckdb.Error(str(said))
            if is_of_database(error):
                raise StoreDamagedError(
                    f"{str(opened.catalog)!r} is damaged: {error}. The catalog contains no data; "
                    f"rebuild it: hta-sql catalog {self._folder.root}"
                ) from error
            if self._leaves_out(opened, error) or self._has_wrong_files(opened):
                return self.run(question, reads)
            raise QueryError(str(error)) from error
        except MemoryError as error:
            raise QueryError(
                "Out of Memory: the result exceeds the memory limit of this process."
            ) from error
        return self.run(question, reads) if self._has_wrong_files(opened) else answer

    def _has_wrong_files(self, opened: Opened) -> bool:
        """Reopen the store without files that differ from the manifest; return whether any do."""
        wrong = opened.files.wrong()
        if not wrong:
            return False
        with self._lock:
            if self.opened() is not opened:
                return True
            manifest = read_manifest(self._folder)
            lost = {e.run for e in manifest.entries for f in e.files.values() if f["path"] in wrong}
            if not lost and not wrong & manifest.named_files():
                return False  # the manifest was replaced since the check
            warn_of_changed_files(self._folder.root, wrong)
            self._leave_out(opened, lost, wrong & {k.path for k in manifest.materialized})
            return True

    def keep(self, runs: Iterable[str], requested: Collection[str] = ()) -> None:
        """Materialize the missing derived tables of runs, if the store is writable.

        This is tried once per run. If it fails, each query computes the derived tables that it
        reads.

        Args:
            runs: The runs.
            requested: Slow derived tables (ON_REQUEST) that the query reads.

        Raises:
            QueryError: The computation was interrupted, or exceeded the time limit of a query.
        """
        with self._lock:
            opened = self.opened()
            wanted = self.on_demand.untried(runs, {run for run, _ in opened.scope}, requested)
            local = self._folder.local and not self._lost and not self._broken
            if not wanted or self._safe or not local:
                return
            if self.on_demand.materialize(opened.con, wanted, requested):
                self._reopen(opened)

    def _reopen(self, opened: Opened) -> None:
        """Open the current catalog instead of the one that is open.

        If a process opens the same file twice, the engine returns the open instance. Therefore the
        old instance is closed first, unless other threads are using it.
        """
        self._replaced.append(opened.con)
        self._close_replaced()
        self._opened = None
        self._opened = self._open()

    def _close_replaced(self) -> None:
        """Close replaced catalogs that no thread uses any longer; each takes tens of MB."""
        if not self._replaced:
            return
        with self._lock:
            asked = {id(con) for con in list(self._asking.values())}
            for con in self._replaced:
                if id(con) not in asked:
                    con.close()
            self._replaced = [con for con in self._replaced if id(con) in asked]

    def _leaves_out(self, opened: Opened, error: duckdb.Error) -> bool:
        """Reopen the store without files that are damaged, given an error; return whether to retry.

        Runs with missing or corrupt files are excluded; derived tables are recomputed.

        Raises:
            StoreError: The store was closed meanwhile, or no run is readable.
        """
        if isinstance(error, duckdb.ConnectionException):
            with self._lock:
                return self.opened() is not opened  # replaced by another thread
        if ".parquet" not in str(error) and type(error) is not duckdb.Error:
            return self.closed  # the retry reports that the store is closed
        with self._lock:
            if self.opened() is not opened:
                return True
            built, content = built_from(opened.con), manifest_bytes(self._folder)
            if built and built.manifest != digest_of(content):
                # A run was removed or renamed in the meantime: use the current store. Damaged files
                # may have been repaired.
                self._lost = self._broken = frozenset()
                self._reopen(opened)
                return True
            manifest = parse_manifest(content, self._folder).without(self._lost)
            lost = unreadable_runs(error, manifest, self._folder)
            broken = unreadable_materialized(error, manifest, self._folder)
            if (lost or broken) and manifest_bytes(self._folder) != content:
                self._reopen(opened)  # files that another process has replaced are not lost
            elif lost or broken:
                self._leave_out(opened, lost, broken)
            return bool(lost or broken)

    def _leave_out(self, opened: Opened, lost: set[str], broken: set[str]) -> None:
        """Reopen the store without these runs and these files of derived tables."""
        self._lost |= lost
        if broken:
            self._forget(broken)
        self._reopen(opened)

    def _forget(self, broken: set[str]) -> None:
        """Remove corrupt materialized files from the manifest; ignore them if it is read-only."""
        log.warning(
            "%s: materialized files cannot be read and will be recomputed: %s.",
            self._folder.root,
            ", ".join(sorted(broken)),
        )
        try:
            if self._safe or self._lost or not self._folder.local:
                self._broken |= broken
                return
            with store_lock(self._folder, 0):
                forget(self._folder, broken)
            self.on_demand.retry()
        except (OSError, duckdb.Error, StoreError) as error:
            log.info("These files remain in the manifest of %s: %s.", self._folder.root, error)
            self._broken |= broken

    def interrupt(self) -> None:
        """Interrupt the queries of other threads, and computations of derived tables for them."""
        self.on_demand.interrupt()
        for cursor in list(self._asking):
            cursor.interrupt()

    def close(self) -> None:
        """Close the catalog; later queries raise an error."""
        with self._lock:
            self.closed = True
            opened, self._opened = self._opened, None
        for con in [*self._replaced, *([opened.con] if opened else [])]:
            con.close()

    def leave_to_parent(self) -> None:
        """Drop the parent's open connections in the child of a fork.

        Closing them would wait for threads that do not exist here, so they are leaked on purpose.
        """
        self._lock = threading.RLock()
        held = [*self._asking, *self._replaced, *([self._opened.con] if self._opened else [])]
        for con in held:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(con))
        Connection._after_fork |= bool(held)
        self._asking, self._replaced, self._opened = {}, [], None

    def _open(self) -> Opened:
        """Open a catalog of the current manifest: the store's own, or one in the user's cache."""
        library = self._library
        for _ in range(ATTEMPTS):
            identity = identity_of(self._folder, library)
            whole = not self._lost and not self._broken
            if self._folder.local and whole and may_serve(self._folder, library):
                own = self._folder.local / CATALOG
                opened = self._connected(own, identity)
                if not (opened or library.shipped) and refreshed(self._folder, library, identity):
                    opened = self._connected(own, identity)
                if opened:
                    return opened
            try:
                catalog = private_catalog(self._folder, library, identity, self._lost, self._broken)
            except duckdb.Error as error:
                root = self._folder.root
                raise StoreDamagedError(
                    f"The catalog of {root!r} cannot be built: {error}. Find the cause with: "
                    f"hta-sql verify {root}"
                ) from error
            if opened := self._connected(catalog, identity):
                if not lacks_replaced_runs(opened.con, self._folder, identity):
                    return opened
                opened.con.close()
            catalog.unlink(missing_ok=True)
        raise StoreError(
            f"The store {self._folder.root!r} was replaced {ATTEMPTS} times while it was being opened. "
            "Try again."
        )

    def _connected(self, catalog: Path, identity: Identity) -> Opened | None:
        """Open a catalog; None if it does not match the identity."""
        try:
            con = self._engine(catalog)
        except duckdb.ConnectionException as error:
            raise StoreError(
                f"This process has {self._folder.root!r} open with different threads or memory_limit; "
                "close the store first, or open it with the same options."
            ) from error
        except duckdb.OutOfMemoryException as error:
            raise QueryError(str(error)) from error
        except (OSError, duckdb.Error):
            return None
        try:
            return self._ready(con, catalog, identity)
        except duckdb.OutOfMemoryException as error:
            raise QueryError(str(error)) from error
        except duckdb.Error as error:
            if not is_of_database(error):
                raise
            con.close()
            return None

    def _ready(
        self, con: duckdb.DuckDBPyConnection, catalog: Path, identity: Identity
    ) -> Opened | None:
        """Configure an open catalog; None if it does not match the identity.

        Raises:
            duckdb.Error: The catalog is damaged.
        """
        built = built_from(con)
        if not built or not built.serves(identity):
            con.close()
            return None
        configure(con, self._folder)
        warn_of_runs_left_out(con, self._folder.root)
        sandbox = Sandbox(con) if self._safe else None
        self._limits.put_on(con)
        if self._safe:
            lock(con, self._folder.spellings())
        known = self._library
        files = FileCheck(self._folder, known, self._lost, self._broken, verify=self._verify)
        return Opened(con, catalog, *ranks_of(con), kept_of(con), sandbox, files)

    def _engine(self, catalog: Path) -> duckdb.DuckDBPyConnection:
        """Connect to a catalog; after a fork, connect to a copy, so that no instance is shared."""
        if not Connection._after_fork:
            return duckdb.connect(str(catalog), read_only=True, config=self._config)
        with temporary_folder() as folder:
            return duckdb.connect(shutil.copy(catalog, folder), read_only=True, config=self._config)


_LIVING: weakref.WeakSet[Connection] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for connection in list(_LIVING):
        connection.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
