"""Materializes derived tables of an open store before the queries that read them run."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import duckdb

from hta_sql.library.objects import Library
from hta_sql.replay.watch import ComputationStoppedError, Progress, Watch
from hta_sql.store.catalog.materialize import materialize_missing
from hta_sql.store.catalog.materialized_tables import ON_REQUEST
from hta_sql.store.disk.folder import StoreFolder

OTHER_RUNS = 8
"""Maximum number of other runs whose derived tables a query also materializes (0.3 s each)."""


class OnDemand:
    """Materializes the derived tables of runs; each run is tried once.

    Args:
        folder: The store.
        library: Tables, macros and analyses.
        seconds: Time after which a computation is interrupted [s]; None for no limit.
        memory_limit: Memory limit of the engine, and separately of a replay.

    Attributes:
        progress: Called as tables are computed, and with done = total at the end, unless None.
    """

    def __init__(
        self, folder: StoreFolder, library: Library, seconds: float | None, memory_limit: str
    ) -> None:
        self._given = (folder, library)
        self._limits = (seconds, memory_limit)
        self._tried: dict[bool, set[str]] = {False: set(), True: set()}
        self._watch: Watch | None = None
        self.progress: Progress | None = None

    def untried(
        self, runs: Iterable[str], known: Iterable[str], requested: Collection[str]
    ) -> set[str]:
        """Return the runs to try for a query, and mark them as tried.

        Up to :data:`OTHER_RUNS` other runs are included. If a single run has no materialized
        derived tables, the engine plans their computation (1.4 s) in every query, regardless of the
        runs that the query selects.

        Args:
            runs: Runs of the query.
            known: Runs of the store.
            requested: Slow derived tables (ON_REQUEST) that the query reads.
        """
        is_slow = not ON_REQUEST.isdisjoint(requested)
        tried = self._tried[is_slow]
        others = [] if is_slow else sorted(set(known) - tried)[:OTHER_RUNS]
        found = {*runs, *others} - tried
        tried |= found
        return found

    def materialize(
        self, con: duckdb.DuckDBPyConnection, runs: set[str], requested: Collection[str]
    ) -> bool:
        """Materialize missing derived tables; return whether the catalog may have changed.

        Raises:
            ComputationStoppedError: The computation was interrupted, or exceeded its time limit.
        """
        self._watch = watch = Watch(*self._limits, self.progress)
        try:
            without = ON_REQUEST.difference(requested)
            return materialize_missing(*self._given, con, runs, without, watch=watch)
        except ComputationStoppedError:
            for tried in self._tried.values():
                tried.difference_update(runs)  # the next query tries again
            raise
        finally:
            self._watch = None
            if self.progress:
                self.progress("done", 1, 1)

    def interrupt(self) -> None:
        """Interrupt a computation that runs in another thread."""
        if watch := self._watch:
            watch.stop()

    def retry(self) -> None:
        """Allow all runs to be tried again, because materialized files were lost."""
        for tried in self._tried.values():
            tried.clear()
