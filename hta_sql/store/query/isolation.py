"""Process isolation of a safe store: worker processes run queries and functions."""

from __future__ import annotations

import weakref
from typing import Any

from hta_sql.errors import StoreError
from hta_sql.store.query.worker_pool import Workers

OF_THIS_PROCESS = "memory://"
"""Prefix of locations that other processes cannot read."""


class Isolating:
    """Mixin that gives a store worker processes if it was opened with ``safe=True``."""

    _isolated = True
    """Whether queries of a safe store run in worker processes; False inside a worker."""

    _workers: Workers | None = None

    def _isolate(self, path: str, options: dict[str, Any]) -> None:
        """Start the first worker of a safe store; all workers end with the store."""
        if options["safe"] and self._isolated and not path.startswith(OF_THIS_PROCESS):
            self._workers = Workers(path, options)
            weakref.finalize(self, self._workers.close)
            self._workers.warm()

    def call(self, function: str, *, seconds: float | None = None, **given: Any) -> Any:
        """Call a function with this store in a worker process.

        Args:
            function: ``module:name`` of a function ``f(store, **given)`` that returns a JSON value.
            seconds: Time after which the call is interrupted [s]; default: the limit of the store.
            **given: Arguments of the function.

        Raises:
            StoreError: The store was not opened with ``safe=True``.
            QueryError: The call timed out, or its worker process ended.
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
