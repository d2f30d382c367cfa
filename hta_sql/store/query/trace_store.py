"""TraceStore: a read-only connection to a store that runs analyses and SQL queries."""

from __future__ import annotations

import os
import weakref
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hta_sql.closing import Closing
from hta_sql.errors import AnalysisNotFoundError, StoreError, nearest
from hta_sql.library import sqltext
from hta_sql.library.objects import SqlObject
from hta_sql.library.parameters import check_parameters, narrowing, taken_by
from hta_sql.library.user_analyses import Analyses, library_of, user_folders
from hta_sql.results.result import Result
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.query.connection import Connection
from hta_sql.store.query.distributed import gathered, read, tasks_of, unchanged_identity
from hta_sql.store.query.execution import Question, first_rows_of, questions_of, result_of, table_of
from hta_sql.store.query.limits import UNLIMITED, Limits, checked_rows, engine
from hta_sql.store.query.namespaces import ByName
from hta_sql.store.query.open_catalog import warn_of_other_definitions
from hta_sql.store.query.partitions import is_partitioned, tasks
from hta_sql.store.query.requested_scope import check_scope
from hta_sql.store.query.role_stores import ByRole
from hta_sql.store.query.sandbox import reading
from hta_sql.store.query.workers import Workers
from hta_sql.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from concurrent.futures import Executor, Future

    import duckdb
    import pyarrow as pa

    from hta_sql.replay.watch import Progress
    from hta_sql.results.first_rows import FirstRows
    from hta_sql.store.disk.reports import IngestReport, PublishReport
    from hta_sql.store.query.distributed import TaskResult


class TraceStore(ByName, ByRole, Closing):
    """A store of ingested traces, opened for reading.

    A store is thread-safe. Each call uses its own cursor, so temporary tables and settings end with
    the call. After a fork or unpickling, the store opens its catalog again.

    Args:
        path: Folder of the store, or its fsspec URL.
        threads: Number of threads of the engine; default: the cores of this process.
        memory_limit: Memory limit of the engine, for example ``"2GiB"``; default: a share of the
            cgroup's limit.
        safe: Restrict untrusted queries to reading this store: no other files, no writes, no
            extensions, no settings. Each query runs in a worker process.
        limits: Limits of a query; default: ``Limits()`` with ``safe``, otherwise memory only.
        analyses: Folders with user analyses, in addition to the shipped analyses; default: the
            folders in ``HTA_SQL_ANALYSES``. Installed packages may add more.
        verify: Verify the checksums of all files before the first answer; default: files up to 1 MB.

    Attributes:
        library: Tables, macros and analyses of the store.
        catalog_path: The DuckDB file that this connection reads.
        ingested: Report of the ingest that returned this store; None for a store that was opened.
        published: Report of the publish that returned this store; None otherwise.

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreVersionError: The store was written by an incompatible version, or with different
            tables.
        StoreError: The store is open in this process with different settings.
        LibraryError: A user analysis is malformed, is rejected by the engine, or has a name that is
            already taken.
    """

    _connects: type[Connection] = Connection

    _isolated = True  # queries of a safe store run in worker processes; False inside a worker

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        threads: int | None = None,
        memory_limit: str | None = None,
        safe: bool = False,
        limits: Limits | None = None,
        analyses: Analyses = None,
        verify: bool = False,
    ) -> None:
        options: dict[str, Any] = {"threads": threads, "memory_limit": memory_limit, "safe": safe}
        options |= {"limits": limits or (Limits() if safe else UNLIMITED), "verify": verify}
        self._set_up(path, {**options, "analyses": user_folders(analyses)})
        self._open()

    def _set_up(self, path: str | os.PathLike[str], options: dict[str, Any]) -> None:
        self.path = Path(path)
        self.ingested: IngestReport | None = None
        self.published: PublishReport | None = None
        self._told_of_definitions = False
        self._waiting: set[Future[TaskResult]] = set()
        self._workers: Workers | None = None
        self._options = options
        self._folder = store_folder(path)
        config = engine(options["threads"], options["memory_limit"])
        self.library = library_of(options["analyses"])
        given = {key: options[key] for key in ("safe", "limits", "verify")}
        self._connection = self._connects(self._folder, config, self.library, **given)

    def _open(self) -> None:
        """Open the catalog, and start the first worker of a safe store."""
        self._connection.opened()
        root = self._folder.root
        # Other processes cannot read the files of a file system in memory.
        if self._options["safe"] and self._isolated and not root.startswith("memory://"):
            self._workers = Workers(root, self._options)
            weakref.finalize(self, self._workers.close)

    def __getstate__(self) -> dict[str, Any]:
        """Return path and options for pickling; open connections are not transferred."""
        closed = self._connection.closed
        return {"path": self._folder.root, "options": self._options, "closed": closed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set_up(state["path"], state["options"])
        if state["closed"]:
            self.close()
        else:
            self._open()

    @property
    def catalog_path(self) -> str:
        """Path of the DuckDB catalog of this connection."""
        return str(self._connection.opened().catalog)

    def run(
        self,
        name: str,
        *,
        version: int | None = None,
        executor: Executor | None = None,
        **parameters: Any,
    ) -> Result:
        """Run an analysis.

        Args:
            name: Name of the analysis, with or without version: ``temporal_breakdown``.
            version: Version to use; default: the newest stable one.
            executor: Any ``concurrent.futures.Executor``; each task computes some runs or ranks.
                Its workers open the store by its path, with the same threads and memory_limit.
                Large results stay in the store: see ``Result.paths``. An analysis that is
                materialized or cannot be partitioned is computed in this process.
            **parameters: Parameters documented by :meth:`describe`, bound, never interpolated; with
                ``roles``, the analysis runs in this process on the store of :meth:`of_roles`.

        Returns:
            The result, with ``.df()``, ``.arrow()``, ``.pl()``, ``.rows()``, ``.show()``.

        Raises:
            AnalysisNotFoundError: The analysis or version does not exist.
            ParameterError: A parameter or step is unknown, or a value has the wrong type.
            RankError: A requested run or rank is not in the store.
            StoreError: Workers of the executor cannot see the store.
        """
        if "roles" in parameters:
            return self._part(
                TraceStore.run, name, version=version, executor=executor, **parameters
            )
        analysis, values, is_kept = self._prepared(name, version, parameters)
        # Run it now, because a chart may be drawn after the store is closed.
        drawn_from = None
        if drawn := analysis.facts.get("Drawn from"):
            taken = taken_by(self.library.find(drawn), parameters)
            drawn_from = self.run(drawn, executor=executor, **taken)
        about = (analysis, narrowing(parameters), drawn_from)
        if executor and not is_kept and is_partitioned(analysis, self.library):
            self.check_scope(values)
            parts = self._elsewhere(analysis, values, executor)
            paths = [self._folder.path(part) for part in parts if isinstance(part, str)]
            return Result.of_rows(partial(read, self._folder, parts, analysis), *about, paths)
        rows = self._connection.run(
            lambda con: table_of(con, self._questions(analysis, values, is_kept=is_kept), analysis),
            values.get("runs"),
        )
        return Result.of_rows(rows, *about)

    def head(
        self, name: str, count: int, *, version: int | None = None, **parameters: Any
    ) -> FirstRows:
        """Run an analysis like :meth:`run`, but return only the first ``count`` rows."""
        if "roles" in parameters:
            return self._part(TraceStore.head, name, count, version=version, **parameters)
        analysis, values, is_kept = self._prepared(name, version, parameters)

        def question(con: duckdb.DuckDBPyConnection) -> FirstRows:
            asked = self._questions(analysis, values, is_kept=is_kept)
            return first_rows_of(con, asked, count, analysis, narrowing(parameters))

        return self._connection.run(question, values.get("runs"))

    def _prepared(
        self, name: str, version: int | None, parameters: Mapping[str, Any]
    ) -> tuple[SqlObject, dict[str, Any], bool]:
        """Resolve an analysis and check its values; also return whether it is materialized."""
        analysis = self.library.find(name, version)
        if analysis.topic != "health" and not self._told_of_definitions:  # health reports it
            self._told_of_definitions = True
            warn_of_other_definitions(self._connection.opened().changed, self._folder.root)
        values = check_parameters(analysis, parameters)
        is_kept = self._is_kept(analysis, values)
        if self.library.reads_derived(analysis) and not is_kept:
            requested = self.library.derived_in(analysis.name)
            self._connection.keep(values.get("runs") or self.runs(), requested)
        return analysis, values, is_kept

    def _questions(
        self, analysis: SqlObject, values: dict[str, Any], *, is_kept: bool
    ) -> list[Question]:
        """Return the queries of an analysis for the store as it is currently open."""
        self.check_scope(values)
        if is_kept:
            return [(sqltext.of_scope(sqltext.stored_answer(analysis.base_name), values), values)]
        return questions_of(analysis, values, self._connection.opened().ranks)

    def _elsewhere(
        self, analysis: SqlObject, values: Mapping[str, Any], executor: Executor
    ) -> list[TaskResult]:
        """Compute an analysis on an executor; return its partitions in row order."""
        opened = self._connection.opened()
        wanted = unchanged_identity(self._folder, self.library, opened.con)
        scopes = tasks(analysis, opened.ranks, values) or [{}]
        options = {key: self._options[key] for key in ("threads", "memory_limit", "verify")}
        asked = tasks_of(self._folder, options, wanted, (analysis, values), scopes)
        return gathered(asked, executor, self._waiting)

    def _is_kept(self, analysis: SqlObject, values: Mapping[str, Any]) -> bool:
        """Return whether a materialized answer covers a query with default arguments and these runs."""
        kept = self._connection.opened().materialized.get(analysis.base_name)
        if not kept or values.keys() - {"runs"}:
            return False
        runs = values.get("runs", self.runs())
        is_default = analysis == self.library.base.find(analysis.base_name)
        return bool(is_default and runs and kept.issuperset(runs))

    def sql(
        self,
        query: str,
        parameters: Mapping[str, Any] | list[Any] | None = None,
        *,
        most_rows: int | None = None,
    ) -> Result:
        """Run one SQL query over the tables, analyses and macros.

        Args:
            query: SQL in DuckDB's dialect.
            parameters: Values for ``$name`` or ``?`` in the query.
            most_rows: Maximum number of rows to fetch; None for all rows.

        Raises:
            QueryError: The engine rejected the query or failed (with the engine's message), or the
                query exceeded the time or row limit of this store.
        """
        if self._workers:
            return Result.of_rows(self._workers.sql(query, parameters, most_rows))
        if self.library.asks_derived(query):
            self._connection.keep(self.runs(), self.library.derived_in(query))
        limit = self._options["limits"].rows if most_rows is None else None
        most = most_rows if limit is None else limit + 1

        def question(con: duckdb.DuckDBPyConnection) -> Result:
            checked = reading(query) if self._options["safe"] else query
            result = result_of(con, checked, parameters, most)
            checked_rows(limit, len(result))
            return result

        return self._connection.run(question)

    def call(self, function: str, *, seconds: float | None = None, **given: Any) -> Any:
        """Call ``module:name`` as ``name(store, **given)`` in a worker process; see ``Workers.call``.

        Raises:
            StoreError: The store was not opened with ``safe=True``.
        """
        if self._workers is None:
            raise StoreError("Only a store that was opened with safe=True has worker processes.")
        return self._workers.call(function, given, seconds)

    def run_over(
        self,
        name: str,
        query: str,
        tables: Mapping[str, pa.Table],
        parameters: Mapping[str, Any],
        given: Iterable[str] = (),
    ) -> Result:
        """Compute the result of an analysis from tables that may come from outside of the store.

        Args:
            name: The analysis whose columns the query returns.
            query: Trusted SQL over the store's macros and these tables.
            tables: Name in the query ─▶ table.
            parameters: Values for ``$name`` in the query.
            given: Names of the parameters with which the caller restricted the analysis.

        Raises:
            QueryError: The engine failed.
        """
        analysis = self.library.find(name)

        def question(con: duckdb.DuckDBPyConnection) -> Result:
            # The names are visible only to this query.
            for table_name, table in tables.items():
                con.register(table_name, table)
            return Result.of_rows(table_of(con, [(query, dict(parameters))]), analysis, given)

        return self._connection.run(question)

    def table(
        self, name: str, *, runs: list[str] | None = None, ranks: list[int] | None = None
    ) -> Result:
        """Return the rows of a table.

        Args:
            name: Name of the table: ``gpu_ops``.
            runs: Runs; default: all.
            ranks: Ranks; default: all.

        Raises:
            AnalysisNotFoundError: The table does not exist.
            RankError: A requested run or rank is not in the store.
            QueryError: The engine failed.
        """
        tables = {table.name: table for table in self.library.tables}
        if name not in tables:
            raise AnalysisNotFoundError(f"No table {name!r}.{nearest(name, tables)}")
        columns = {column.name for column in tables[name].columns}
        # The table runs has no column rank, and the table arguments has neither run nor rank.
        wanted = {"runs": runs, "ranks": ranks}
        scope = {key: value for key, value in wanted.items() if key.removesuffix("s") in columns}

        def question(con: duckdb.DuckDBPyConnection) -> Result:
            self.check_scope(wanted)
            return Result.of_rows(table_of(con, [(sqltext.of_scope(name, scope), scope)]))

        return self._connection.run(question, runs)

    def ranks(self, run: str | None = None) -> list[int]:
        """List the ranks of a run; default: of all runs."""
        ranks = self._connection.opened().ranks
        return sorted({rank for name, rank, _ in ranks if run in (None, name)})

    def runs(self) -> list[str]:
        """List the runs."""
        return sorted({run for run, *_ in self._connection.opened().ranks})

    def report_progress(self, progress: Progress | None) -> None:
        """Call a function with (what, done, total) as queries materialize derived tables."""
        self._connection.on_demand.progress = progress

    def interrupt(self) -> None:
        """Interrupt the queries of other threads, their workers, and the tasks on executors."""
        self._connection.interrupt()
        if self._workers:
            self._workers.interrupt()
        for future in list(self._waiting):
            future.cancel()

    def close(self) -> None:
        """Close the store; later queries raise an error."""
        self._close_roles()
        self._connection.close()
        if self._workers:
            self._workers.close()

    def __repr__(self) -> str:
        if self._connection.closed:
            return f"TraceStore({self._folder.root!r}, closed)"
        ranks = len(self._connection.opened().ranks)
        about = f"{counted(len(self.runs()), 'run')}, {counted(ranks, 'rank')}"
        return f"TraceStore({self._folder.root!r}, {about})"

    def attach_to(self, con: duckdb.DuckDBPyConnection, name: str) -> None:
        """Attach this store's catalog read-only to another connection.

        Args:
            con: The other connection.
            name: Trusted name of the database in that connection.
        """
        if filesystem := self._folder.filesystem():
            con.register_filesystem(filesystem)
        con.execute(sqltext.attach(self.catalog_path, name))

    def check_scope(self, requested: Mapping[str, Any]) -> None:
        """Raise an error if the requested ``runs``, ``ranks`` or ``steps`` are not in the store."""
        check_scope(str(self.path), self._connection, requested)
