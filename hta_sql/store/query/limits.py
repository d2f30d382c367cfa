"""Resource limits of an open store: threads, memory, spill space, time and rows of a query."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import Protocol

import duckdb

from hta_sql.errors import QueryError
from hta_sql.library.engine_settings import limit_spill
from hta_sql.machine import (
    QUERY_ROWS,
    QUERY_SECONDS,
    QUERY_SPILL,
    cpu_count,
    duckdb_memory_limit,
    size_of,
    temporary_prefix,
)
from hta_sql.store.catalog.template import Config

AGAIN_S = 0.1
"""Interval between interrupts of a query that has not stopped yet [s]."""

LEAST_BESIDE = 2 << 30
"""Minimum memory of a bounded process in addition to the limit of its engine [bytes]."""


def engine(threads: int | None, memory_limit: str | None) -> Config:
    """Return the settings of an engine; None stands for the default of this process."""
    return {
        "threads": threads or cpu_count(),
        "memory_limit": memory_limit or duckdb_memory_limit(),
        # Below this row estimate, the engine uses a nested-loop join. It estimates most query
        # stages as one row: a critical path over 25,000 kernels compared 300 million pairs.
        "asof_loop_join_threshold": 0,
        # By default the engine spills into the store.
        "temp_directory": spill_folder(),
    }


@dataclass(frozen=True)
class Limits:
    """Limits of a query from an untrusted source.

    Attributes:
        seconds: Time after which a query, or the computation of derived tables before the query, is
            interrupted [s]; None for no limit.
        rows: Maximum number of rows of a result; None for no limit.
        spill: Maximum total size of the data spilled to the system's temporary folder; None for
            half of the free disk space there.
    """

    seconds: float | None = QUERY_SECONDS
    rows: int | None = QUERY_ROWS
    spill: str | None = QUERY_SPILL

    def put_on(self, con: duckdb.DuckDBPyConnection) -> None:
        """Set the spill limit of an engine, unless its settings are locked."""
        limit_spill(con, self.spill or _half_of_disk())


UNLIMITED = Limits(None, None, None)


class Interruptible(Protocol):
    """A connection to the engine, or a store."""

    def interrupt(self) -> None:
        """Interrupt the running queries."""


@contextmanager
def in_time(
    target: Interruptible, seconds: float | None, limit: float | None = None
) -> Iterator[None]:
    """Interrupt a connection or a store when it exceeds a time limit.

    Args:
        target: What to interrupt.
        seconds: Time after which to interrupt it [s]; None for no limit.
        limit: Time limit in the error message, if a part of it is already over [s].

    Raises:
        QueryError: The target was interrupted.
    """
    if seconds is None:
        yield
        return
    done, late = threading.Event(), threading.Event()

    def watch() -> None:
        if not done.wait(seconds):
            late.set()
            # Interrupt repeatedly, because an interrupt between two statements has no effect.
            while not done.wait(AGAIN_S):
                target.interrupt()

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    except (duckdb.Error, QueryError) as error:
        if late.is_set():
            raise too_long(limit or seconds) from error
        raise
    finally:
        done.set()


def too_long(seconds: float) -> QueryError:
    """Return the error of a query that was interrupted by its time limit."""
    return QueryError(
        f"Interrupted after {seconds:g} s. Request fewer runs, ranks or steps, or allow more time: "
        "--timeout (mcp: --seconds), Limits(seconds=…)."
    )


def checked_rows(limit: int | None, count: int) -> None:
    """Raise if a result has too many rows.

    Raises:
        QueryError: The result has more rows than the limit.
    """
    if limit is not None and count > limit:
        raise QueryError(
            f"The result has more than {limit:,} rows. Aggregate in SQL, add a LIMIT, or raise the limit: "
            "--max-rows, Limits(rows=…)."
        )


@contextmanager
def bounded_process(memory_limit: str | None) -> Iterator[None]:
    """Limit the memory of this process to 1.5 times the limit of its engine.

    At least :data:`LEAST_BESIDE` is allowed in addition to the limit of the engine. Some functions
    create gigabytes of text from small values, and the engine does not count this memory. Memory
    that the process already uses is not counted. Does nothing on systems without such a limit. Use
    this only in a process that is dedicated to queries.

    Args:
        memory_limit: Memory limit of the engine; None for the default.
    """
    try:
        import resource  # noqa: PLC0415 - unavailable on Windows

        status = Path("/proc/self/status").read_text("ascii")
    except (ImportError, OSError):
        yield
        return
    (used,) = (int(line.split()[1]) << 10 for line in status.splitlines() if line[:7] == "VmData:")
    wanted = size_of(memory_limit or duckdb_memory_limit())
    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = used + wanted + max(wanted // 2, LEAST_BESIDE)
    if most == resource.RLIM_INFINITY or allowed < most:
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))


def spill_folder() -> str:
    """Return the path of this process's spill folder; the engine creates it when needed."""
    return f"{gettempdir()}/{temporary_prefix()}spill"


@cache
def _half_of_disk() -> str:
    """Return half of the free disk space, measured once per process."""
    return f"{shutil.disk_usage(gettempdir()).free >> 21}MiB"
