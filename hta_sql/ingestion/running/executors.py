"""Resolves the ``--executor`` option: processes of this machine, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from hta_sql.errors import ExtraNotInstalledError, ParameterError

PROCESSES = "processes"
DASK = "dask://"
RETRIES = 3
"""Number of retries after an error unrelated to the trace, such as a network failure."""


@contextmanager
def executor_for(name: str) -> Iterator[Executor | None]:
    """Connect to an executor by name; yield None for processes of this machine.

    Raises:
        ParameterError: There is no such executor.
        ExtraNotInstalledError: The package for it is not installed.
    """
    if name == PROCESSES:
        yield None
        return
    if not name.startswith(DASK):
        raise ParameterError(f"Unknown executor {name!r}: use {PROCESSES} or {DASK}HOST:PORT.")
    try:
        from distributed import Client  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise ExtraNotInstalledError(
            f"{name!r} needs Dask. Install it: pip install 'hta-sql[dask]'."
        ) from error
    address = f"tcp://{name.removeprefix(DASK)}"
    try:
        client = Client(address)
    except OSError as error:
        raise ParameterError(
            f"Cannot connect to a Dask scheduler at {address}: {error}."
        ) from error
    with client:
        # pure=False: reading a trace has side effects, so Dask must not merge equal tasks.
        yield client.get_executor(pure=False, retries=RETRIES)
