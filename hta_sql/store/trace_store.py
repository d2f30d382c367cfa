"""TraceStore: a read-only connection to a store; run analyses, ask SQL."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from hta_sql.closing import Closing
from hta_sql.errors import (
    AnalysisNotFoundError,
    QueryError,
    RankError,
    StoreError,
    StoreVersionError,
    nearest,
)
from hta_sql.library import sqltext
from hta_sql.library.objects import Library, SqlObject, load_library
from hta_sql.library.parameters import check_parameters, narrowing
from hta_sql.machine import cpu_count, duckdb_memory_limit
from hta_sql.results.result import Result
from hta_sql.store.catalog import Identity, built_from, identity_of, private_catalog, write_catalog
from hta_sql.store.files import store_folder
from hta_sql.store.locks import store_lock
from hta_sql.store.manifest import CATALOG
from hta_sql.store.sandbox import Sandbox, lock
from hta_sql.store.template import Config

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from hta_sql.store.reports import IngestReport, PublishReport

log = logging.getLogger(__name__)

ATTEMPTS = 5
"""Tries to open a store whose manifest is replaced while we look."""


class TraceStore(Closing):
    """A store of ingested traces, opened for reading.

    Args:
        path: Folder of the store, or its fsspec URL.
        threads: Threads of the engine; default: the cores of this process.
        memory_limit: Memory of the engine, for example ``"2GiB"``; default: a share of
            what the cgroup allows.
        safe: Let queries read this store and nothing else: no other file, no writing, no
            extension, no setting. For queries that others wrote.

    Attributes:
        catalog_path: The DuckDB file that this connection reads.
        ingested: What the ingest that returned this store did; None for a store that was opened.
        published: Likewise for a publish.

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreVersionError: It was written by an incompatible version, or with other tables.
        StoreError: It is open in this process with other settings.
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
        self.published: PublishReport | None = None
        self._told_of_definitions = False
        self._folder = store_folder(path)
        self._config: Config = {
            "threads": threads or cpu_count(),
            "memory_limit": memory_limit or duckdb_memory_limit(),
        }
        self._con = self._connect()
        self._scope: list[tuple[str, int]] = self._con.execute(
            "SELECT run, rank FROM stored.rank_scope ORDER BY run, rank"
        ).fetchall()
        self._warn_of_runs_left_out()
        self._sandbox = Sandbox(self._con) if safe else None
        if safe:
            lock(self._con, self._folder.spellings())

    def _connect(self) -> duckdb.DuckDBPyConnection:
        """Open a catalog of the manifest that is there: the store's own, or one of our own."""
        library = load_library()
        for _ in range(ATTEMPTS):
            identity = identity_of(self._folder, library)
            if self._folder.local:
                own = self._folder.local / CATALOG
                con = self._opened(own, identity)
                if con is None and self._refreshed(library, identity):
                    con = self._opened(own, identity)
                if con:
                    return con
            if con := self._opened(private_catalog(self._folder, library, identity), identity):
                return con
        raise StoreError(
            f"The store {self._folder.root!r} was replaced {ATTEMPTS} times while it was opened. "
            "Try again."
        )

    def _opened(self, catalog: Path, identity: Identity) -> duckdb.DuckDBPyConnection | None:
        """Open a catalog; None where it is not the right one."""
        try:
            con = duckdb.connect(str(catalog), read_only=True, config=self._config)
        except duckdb.ConnectionException as error:
            raise StoreError(
                f"This process has {self._folder.root!r} open with other threads or memory_limit; "
                "close that first, or open it with the same."
            ) from error
        except duckdb.Error:
            return None
        if built_from(con) != identity:
            con.close()
            return None
        self.catalog_path = str(catalog)
        if filesystem := self._folder.filesystem():
            con.register_filesystem(filesystem)
        return con

    def _refreshed(self, library: Library, identity: Identity) -> bool:
        """Rebuild the store's own catalog, where it may be written and nobody else is at it."""
        try:
            with store_lock(self._folder, 0):
                if identity_of(self._folder, library) == identity:
                    write_catalog(self._folder, library)
        except (OSError, duckdb.Error) as error:
            log.info("The catalog of %s cannot be rebuilt there: %s.", self._folder.root, error)
            return False
        except StoreVersionError:
            raise
        except StoreError:
            return False  # an ingest is at it, and will replace it
        log.info("Rebuilt the catalog of %s.", self._folder.root)
        return True

    def _warn_of_runs_left_out(self) -> None:
        ((outdated, lost),) = self._con.execute(
            "SELECT left_out, lost FROM stored.store_info"
        ).fetchall()
        if outdated:
            log.warning(
                "%s: left out runs that were written with other table definitions; upgrade hta_sql "
                "if a newer one wrote them, else ingest their traces again: %s.",
                self._folder.root,
                outdated,
            )
        if lost:
            log.warning(
                "%s: left out runs whose Parquet is missing or broken; ingest their traces again, "
                "or bring the files back and run hta-sql catalog: %s.",
                self._folder.root,
                lost,
            )

    def _warn_of_other_definitions(self) -> None:
        """Say once which runs another version read, in other ways perhaps."""
        if self._told_of_definitions:
            return
        self._told_of_definitions = True
        rows = self._con.execute(
            "SELECT DISTINCT run FROM stored.rank_scope WHERE definitions_changed ORDER BY run"
        ).fetchall()
        if rows:
            log.warning(
                "%s: runs that were ingested by other definitions than this hta_sql's, so that "
                "some numbers may differ; ingest the same traces again, into it: %s.",
                self._folder.root,
                ", ".join(run for (run,) in rows),
            )

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
        if analysis.topic != "health":  # which says so itself
            self._warn_of_other_definitions()
        values = check_parameters(analysis, parameters)
        self.check_scope(values.get("runs") or (), values.get("ranks") or ())
        call = sqltext.call(analysis.name, {key: f"${key}" for key in values})
        # Now, since a chart may be drawn when the store is closed.
        drawn = analysis.facts.get("Drawn from")
        return Result(
            self._execute(call, values),
            analysis,
            narrowing(parameters),
            self.run(drawn, **_taken_by(drawn, parameters)) if drawn else None,
        )

    def sql(self, query: str, parameters: Mapping[str, Any] | list[Any] | None = None) -> Result:
        """Ask one SQL query of the tables, analyses and macros.

        Args:
            query: SQL in DuckDB's dialect.
            parameters: Values for ``$name`` or ``?`` in the query.

        Raises:
            QueryError: The engine refused or failed it; the message is the engine's.
        """
        if self._sandbox:
            query = self._sandbox.checked(self._con, query)
        return Result(self._execute(query, parameters))

    def run_over(
        self,
        name: str,
        query: str,
        tables: Mapping[str, pa.Table],
        parameters: Mapping[str, Any],
        given: Iterable[str] = (),
    ) -> Result:
        """Compute what an analysis returns from tables that may come from elsewhere.

        Args:
            name: The analysis whose columns the query has.
            query: SQL that is ours, of the store's macros and these tables.
            tables: Name in the query ─▶ table.
            parameters: Values for ``$name`` in the query.
            given: Names of the parameters that the caller narrowed it by.

        Raises:
            QueryError: The engine failed.
        """
        analysis = load_library().find(name)
        # Names that no other query sees.
        with self._con.cursor() as con:
            try:
                for table_name, table in tables.items():
                    con.register(table_name, table)
                return Result(con.sql(query, params=dict(parameters)), analysis, given=given)
            except duckdb.Error as error:
                raise QueryError(str(error)) from error

    def table(
        self, name: str, *, runs: list[str] | None = None, ranks: list[int] | None = None
    ) -> Result:
        """Return the rows of a table.

        Args:
            name: Its name: ``gpu_ops``.
            runs: Runs; default: all.
            ranks: Ranks; default: all.

        Raises:
            AnalysisNotFoundError: No such table.
            RankError: A wanted run or rank is not in the store.
            QueryError: The engine failed.
        """
        tables = {table.name: table for table in load_library().tables}
        if name not in tables:
            raise AnalysisNotFoundError(f"No table {name!r}.{nearest(name, tables)}")
        self.check_scope(runs or (), ranks or ())
        columns = {column.name for column in tables[name].columns}
        # The table of runs has no ranks.
        scope = {"runs": runs} | ({"ranks": ranks} if "rank" in columns else {})
        return Result(self._execute(sqltext.of_scope(name, scope), scope))

    def describe(self, name: str, version: int | None = None) -> SqlObject:
        """Return what an analysis takes, returns and means."""
        return load_library().find(name, version)

    def ranks(self, run: str | None = None) -> list[int]:
        """List the ranks of a run; of all runs by default."""
        return sorted({rank for name, rank in self._scope if run in (None, name)})

    def runs(self) -> list[str]:
        """List the runs."""
        return sorted({run for run, _ in self._scope})

    def interrupt(self) -> None:
        """Stop the query that is running; called from another thread than the one that asks."""
        self._con.interrupt()

    def close(self) -> None:
        """Close the connection."""
        self._con.close()

    def __repr__(self) -> str:
        return (
            f"TraceStore({self._folder.root!r}, {len(self.runs())} runs, {len(self._scope)} ranks)"
        )

    def attach_to(self, con: duckdb.DuckDBPyConnection, name: str) -> None:
        """Attach this store's catalog to another connection, to be read.

        Args:
            con: The other connection.
            name: Name of the database there, trusted.
        """
        if filesystem := self._folder.filesystem():
            con.register_filesystem(filesystem)
        con.execute(sqltext.attach(self.catalog_path, name))

    def check_scope(self, wanted_runs: Iterable[str], wanted_ranks: Iterable[int]) -> None:
        """Refuse runs and ranks that are not in the store.

        Raises:
            RankError: The first that is not, and what there is.
        """
        runs = self.runs()
        for run in wanted_runs:
            if run not in runs:
                raise RankError(f"No run {run!r} in {str(self.path)!r}; it has: {', '.join(runs)}.")
        ranks = self.ranks()
        for rank in wanted_ranks:
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


def _taken_by(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Keep those parameters that an analysis has."""
    known = {parameter.name for parameter in load_library().find(name).parameters}
    return {key: value for key, value in parameters.items() if key in known}
