"""TraceStore: a read-only connection to a store; run analyses, ask SQL."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import duckdb

from hta_sql.catalog import build_catalog
from hta_sql.errors import QueryError, RankError, StoreError
from hta_sql.library import SqlObject, load_library
from hta_sql.machine import cpu_count, duckdb_memory_limit
from hta_sql.manifest import CATALOG, read_manifest
from hta_sql.parameters import check_parameters
from hta_sql.result import Result
from hta_sql.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hta_sql.ingestion import IngestReport

log = logging.getLogger(__name__)


class TraceStore:
    """A store of ingested traces, opened for reading.

    Args:
        path: Folder of the store.
        threads: Threads of the engine; default: the cores of this process.
        memory_limit: Memory of the engine, for example ``"2GiB"``; default: a share of
            what the cgroup allows.
        safe: Let queries read this store and nothing else: no other file, no writing, no
            extension, no setting. For queries that others wrote.

    Attributes:
        ingested: What the ingest that returned this store did; None for a store that was opened.

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreVersionError: It was written by an incompatible version.
        StoreError: It was moved and cannot be repaired here.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        threads: int | None = None,
        memory_limit: str | None = None,
        safe: bool = False,
    ) -> None:
        self.path = Path(path)
        self.ingested: IngestReport | None = None
        self._manifest = read_manifest(self.path)
        self._config: dict[str, str | bool | int | float | list[str]] = {
            "threads": threads or cpu_count(),
            "memory_limit": memory_limit or duckdb_memory_limit(),
        }
        self._con = self._connect()
        self._sandbox = Sandbox(self._con, self.path.resolve()) if safe else None

    def _connect(self) -> duckdb.DuckDBPyConnection:
        catalog = self.path / CATALOG
        if not catalog.exists():
            self._rebuild("it has no catalog")
        try:
            con = duckdb.connect(str(catalog), read_only=True, config=self._config)
        except duckdb.Error as error:
            self._rebuild(f"its catalog cannot be opened ({error})")
            con = duckdb.connect(str(catalog), read_only=True, config=self._config)
        location = con.execute("SELECT location FROM stored.store_info").fetchall()
        if location == [(str(self.path.resolve()),)]:
            return con
        con.close()
        self._rebuild("it was moved")
        return duckdb.connect(str(catalog), read_only=True, config=self._config)

    def _rebuild(self, why: str) -> None:
        try:
            build_catalog(self.path)
        except OSError as error:
            raise StoreError(
                f"The store {str(self.path)!r} needs a new catalog ({why}), and this folder is "
                f"not writable here. Run where it is: hta-sql catalog {self.path}"
            ) from error
        log.info("Rebuilt the catalog of %s: %s.", self.path, why)

    def run(self, name: str, *, version: int | None = None, **parameters: Any) -> Result:
        """Run an analysis.

        Args:
            name: Its name, with or without version: ``temporal_breakdown``.
            version: Pins a version; default: the newest stable one.
            **parameters: As documented by :meth:`describe`; values are bound, never pasted.

        Returns:
            The result, with ``.df()``, ``.arrow()``, ``.pl()``, ``.rows()``, ``.show()``.

        Raises:
            AnalysisNotFoundError: No such analysis or version.
            ParameterError: An unknown parameter, or a value of the wrong type.
            RankError: A wanted run or rank is not in the store.
        """
        analysis = load_library().find(name, version)
        values = check_parameters(analysis, parameters)
        self._check_scope(values)
        call = ", ".join(f"{key} := ${key}" for key in values)
        return Result(self._execute(f"FROM {analysis.name}({call})", values), analysis)

    def sql(self, query: str, parameters: Mapping[str, Any] | list[Any] | None = None) -> Result:
        """Ask one SQL query of the tables, analyses and macros.

        Args:
            query: SQL in DuckDB's dialect.
            parameters: Values for ``$name`` or ``?`` in the query.

        Raises:
            QueryError: The engine refused or failed it; the message is the engine's.
        """
        if self._sandbox:
            self._sandbox.check(query)
        return Result(self._execute(query, parameters))

    def describe(self, name: str, version: int | None = None) -> SqlObject:
        """Return what an analysis takes, returns and means."""
        return load_library().find(name, version)

    def ranks(self, run: str | None = None) -> list[int]:
        """List the ranks of a run; of all runs by default."""
        return sorted({e.rank for e in self._manifest.entries if run in (None, e.run)})

    def runs(self) -> list[str]:
        """List the runs."""
        return self._manifest.runs()

    def interrupt(self) -> None:
        """Stop the query that is running; called from another thread than the one that asks."""
        self._con.interrupt()

    def close(self) -> None:
        """Close the connection."""
        self._con.close()

    def __enter__(self) -> TraceStore:  # noqa: PYI034 - Self is in typing from 3.11 on
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        ranks = len(self._manifest.entries)
        return f"TraceStore({str(self.path)!r}, {len(self.runs())} runs, {ranks} ranks)"

    def _check_scope(self, values: Mapping[str, Any]) -> None:
        runs = self.runs()
        for run in values.get("runs") or ():
            if run not in runs:
                raise RankError(f"No run {run!r} in {str(self.path)!r}; it has: {', '.join(runs)}.")
        ranks = self.ranks()
        for rank in values.get("ranks") or ():
            if rank not in ranks:
                known = ", ".join(map(str, ranks[:20])) + (" ..." if len(ranks) > 20 else "")
                raise RankError(f"No rank {rank} in {str(self.path)!r}; it has: {known}.")

    def _execute(self, query: str, parameters: Any) -> duckdb.DuckDBPyRelation:
        try:
            if parameters:
                return self._con.sql(query, params=parameters)
            return self._con.sql(query)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
