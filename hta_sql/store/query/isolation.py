"""What a safe store does in worker processes: queries of others, and functions that answer them."""

from __future__ import annotations

import weakref
from typing import Any

from hta_sql.errors import StoreError
from hta_sql.store.query.worker_pool import Workers

OF_THIS_PROCESS = "memory://"
"""Beginning of a location that no other process can read."""


class Isolating:
    """Gives a store worker processes, if it was opened with ``safe=True``."""

    _isolated = True
    """Whether queries of a safe store run in worker processes; not inside of one."""

    _workers: Workers | None = None

    def _isolate(self, path: str, options: dict[str, Any]) -> None:
        """Start the first worker of a safe store; workers end with the store."""
        if options["safe"] and self._isolated and not path.startswith(OF_THIS_PROCESS):
            self._workers = Workers(path, options)
            weakref.finalize(self, self._workers.close)
            self._workers.warm()

    def call(self, function: str, *, seconds: float | None = None, **given: Any) -> Any:
        """Call a function with this store in a worker process.

        Args:
            function: ``module:name`` of a function ``f(store, **given)`` that returns JSON.
            seconds: Time after which it is interrupted; default: that of the store's limits.
            **given: Its arguments.

        Raises:
            StoreError: The store was not opened with ``safe=True``.
            QueryError: It took too long, or its worker ended.
        """
        if self._workers is None:
            raise StoreError("Only a store that was opened with safe=True has worker processes.")
        return self._workers.call(function, given, seconds)

    def _interrupt_workers(self) -> None:
        if self._workers:
            self._workers.interrupt()

    def _close_workers(self) -> None:
        if self._workers:
            self._workers.close()
