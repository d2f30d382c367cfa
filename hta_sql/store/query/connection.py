"""The open catalog of a store, shared by many threads: each query gets its own cursor."""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import threading
import weakref
from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TypeVar

import duckdb

from hta_sql.closing import Closing
from hta_sql.errors import QueryError, StoreDamagedError, StoreError
from hta_sql.library.objects import Library
from hta_sql.machine import temporary_folder
from hta_sql.store.catalog.build import Identity, built_from, identity_with, private_catalog
from hta_sql.store.catalog.template import Config
from hta_sql.store.catalog.user_analyses import may_serve
from hta_sql.store.disk.checksums import Checksums
from hta_sql.store.disk.file_checks import (
    Fault,
    described,
    size_faults,
    warn_of_faults,
)
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.manifest import CATALOG, digest_of, manifest_bytes
from hta_sql.store.query.limits import UNLIMITED, Limits, in_time
from hta_sql.store.query.on_demand import OnDemand
from hta_sql.store.query.open_catalog import (
    Checked,
    Opened,
    checked_files,
    configure,
    is_of_database,
    is_of_file,
    kept_of,
    lacks_replaced_runs,
    ranks_of,
    refreshed,
    warn_of_runs_left_out,
)
from hta_sql.store.query.sandbox import lock

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
        safe: Lock the engine down to the files of the store.
        limits: Limits of a query.
        verify: Hash files of every size, also at a URL, before the first answer.

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
        self._damaged: list[Fault] = []
        self._checks_sizes = folder.local is not None
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

    def run(self, question: Question[Answer], runs: Collection[str] | None = None) -> Answer:
        """Run a query with a cursor that no other thread uses, and close the cursor afterwards.

        Meanwhile a thread compares small files with their checksums. Damaged files of other runs,
        and of computed tables, are left out, and the query is repeated.

        Args:
            question: Runs the query with a cursor.
            runs: The runs that the query is restricted to; None if it may read all of them.

        Raises:
            StoreError: The store is closed.
            StoreDamagedError: A file of these runs, or the catalog, is damaged.
            QueryError: The engine rejected the query, or the query failed.
        """
        self._refuse_damaged(runs)
        opened = self.opened()
        opened.checksums.start()
        try:
            with opened.con.cursor() as cursor:
                self._asking[cursor] = opened.con
                try:
                    seconds = self._limits.seconds
                    with in_time(cursor, seconds) if seconds else nullcontext():
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
            if self._has_damage(opened, runs) or self._has_lost_files(opened, error):
                return self.run(question, runs)
            if is_of_file(error, self._folder):
                raise StoreDamagedError(
                    f"A file of {self._folder.root!r} cannot be read: {error}. To list all faults: "
                    f"hta-sql verify {self._folder.root}"
                ) from error
            raise QueryError(str(error)) from error
        except MemoryError as error:
            raise QueryError(
                "Out of Memory: the result exceeds the memory limit of this process."
            ) from error
        return self.run(question, runs) if self._has_damage(opened, runs) else answer

    def _refuse_damaged(self, runs: Collection[str] | None) -> None:
        """Raise if files of ranks of these runs (None: all) are damaged in the current store."""
        needed = [fault for fault in self._damaged if fault.is_of_ranks]
        faults = [fault for fault in needed if runs is None or fault.run in runs]
        if faults and not self._is_replaced(self.opened()):
            raise StoreDamagedError(
                f"{self._folder.root!r} is damaged: {described(self._folder.root, faults)}. "
                "Analyses of other runs are not affected (runs=[…])."
            )

    def _has_damage(self, opened: Opened, runs: Collection[str] | None) -> bool:
        """Return whether a query must be repeated on the store without newly found damaged files.

        Raises:
            StoreDamagedError: The query may read one of the damaged files.
        """
        faults = opened.checksums.faults()
        if not faults:
            return False
        with self._lock:
            if self.opened() is opened and not self._is_replaced(opened):
                self._damaged += [fault for fault in faults if fault not in self._damaged]
                self._refuse_damaged(runs)
                # For the columns of a table, the engine reads a file of any run.
                self._reopen(opened)
        return True

    def _has_lost_files(self, opened: Opened, error: duckdb.Error) -> bool:
        """Return whether a failed query must be repeated, because the store was opened again.

        Another process may have replaced the files, or runs are left out because files are missing.

        Raises:
            StoreError: The store was closed meanwhile, or no run is readable.
        """
        if isinstance(error, duckdb.ConnectionException):
            with self._lock:
                return self.opened() is not opened  # replaced by another thread
        if not is_of_file(error, self._folder):
            return self.closed  # the retry reports that the store is closed
        with self._lock:
            if self._is_replaced(opened):
                return True
            if not size_faults(self._folder, opened.checked.files):
                return False
            self._checks_sizes = True
            self._reopen(opened)
            return True

    def _is_replaced(self, opened: Opened) -> bool:
        """Open the current store if another process has replaced it; return whether it is open."""
        with self._lock:
            if self.opened() is not opened:
                return True
            built = built_from(opened.con)
            if not built or built.manifest == digest_of(manifest_bytes(self._folder)):
                return False
            self._damaged = []  # the files may have been restored
            self._reopen(opened)
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
            wanted = self.on_demand.untried(runs, {run for run, *_ in opened.ranks}, requested)
            if not wanted or self._safe or not self._folder.local or opened.checked.faults:
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
            content = manifest_bytes(self._folder)
            identity = identity_with(content, self._folder, library)
            checked = checked_files(content, self._folder, self._damaged, sizes=self._checks_sizes)
            if checked.faults and manifest_bytes(self._folder) != content:
                continue  # another process has replaced the files
            if self._folder.local and not checked.faults and may_serve(self._folder, library):
                own = self._folder.local / CATALOG
                opened = self._connected(own, identity, checked)
                if not (opened or library.shipped) and refreshed(self._folder, library, identity):
                    opened = self._connected(own, identity, checked)
                if opened:
                    return opened
            try:
                catalog = private_catalog(self._folder, library, identity, checked.faults)
            except duckdb.Error as error:
                root = self._folder.root
                raise StoreDamagedError(
                    f"The catalog of {root!r} cannot be built: {error}. Find the cause with: "
                    f"hta-sql verify {root}"
                ) from error
            if opened := self._connected(catalog, identity, checked):
                if not lacks_replaced_runs(opened.con, self._folder, identity):
                    if checked.faults:
                        warn_of_faults(self._folder.root, checked.faults)
                    return opened
                opened.con.close()
            catalog.unlink(missing_ok=True)
        raise StoreError(
            f"The store {self._folder.root!r} was replaced {ATTEMPTS} times while it was being opened. "
            "Try again."
        )

    def _connected(self, catalog: Path, identity: Identity, checked: Checked) -> Opened | None:
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
            return self._ready(con, catalog, identity, checked)
        except duckdb.OutOfMemoryException as error:
            raise QueryError(str(error)) from error
        except duckdb.Error as error:
            if not is_of_database(error):
                raise
            con.close()
            return None

    def _ready(
        self, con: duckdb.DuckDBPyConnection, catalog: Path, identity: Identity, checked: Checked
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
        self._limits.put_on(con)
        if self._safe:
            lock(con, self._folder.spellings())
        checksums = Checksums(self._folder, checked.files, verify=self._verify)
        return Opened(con, catalog, *ranks_of(con), kept_of(con), checked, checksums)

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
