"""How much of the machine a store that is open may use."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import gettempdir

import duckdb

from hta_sql.errors import QueryError
from hta_sql.machine import cpu_count, duckdb_memory_limit, size_of, temporary_prefix
from hta_sql.store.catalog.template import Config

AGAIN_S = 0.1
"""Time between two interrupts of a question that goes on."""

LEAST_BESIDE = 2 << 30
"""Memory that a process which is bounded gets beside that of its engines [bytes]."""

KNOWN_FILES = "SET parquet_metadata_cache = true"
"""Of a file that is as it was, the engine reads once what columns it has and where."""


def engine(threads: int | None, memory_limit: str | None) -> Config:
    """Set the engine up; None: as much as this process may use."""
    return {
        "threads": threads or cpu_count(),
        "memory_limit": memory_limit or duckdb_memory_limit(),
        # For fewer rows than this on one side the engine compares each pair. It takes the rows
        # of nearly every stage for one: a path over 25,000 kernels compared 300 million pairs.
        "asof_loop_join_threshold": 0,
        # Left to itself it spills into the store.
        "temp_directory": spill_folder(),
    }


@dataclass(frozen=True)
class Limits:
    """How much a question may cost that somebody else wrote.

    ``hta-sql sql`` states the same defaults in cli/options.py, which does without the engine.

    Attributes:
        seconds: Time after which it is interrupted; None: it takes what it takes.
        rows: Rows of an answer, at most; None: any number.
        spill: What does not fit into memory goes to the temporary folder of the system, up to this
            size in all; None: half of what is free there.
    """

    seconds: float | None = 600.0
    rows: int | None = 10_000_000
    spill: str | None = "10GiB"

    def put_on(self, con: duckdb.DuckDBPyConnection) -> None:
        """Tell an engine how much it may spill, unless it keeps the settings that it has."""
        with suppress(duckdb.InvalidInputException):
            con.execute("SET max_temp_directory_size = ?", [self.spill or _half_of_disk()])


UNLIMITED = Limits(None, None, None)


@contextmanager
def in_time(con: duckdb.DuckDBPyConnection, seconds: float | None) -> Iterator[None]:
    """Interrupt what a connection does when it takes too long.

    Raises:
        QueryError: It was.
    """
    if seconds is None:
        yield
        return
    done, late = threading.Event(), threading.Event()

    def watch() -> None:
        if not done.wait(seconds):
            late.set()
            # Again and again: an interrupt between two statements is forgotten.
            while not done.wait(AGAIN_S):
                con.interrupt()

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    except duckdb.Error as error:
        if late.is_set():
            raise too_long(seconds) from error
        raise
    finally:
        done.set()


def too_long(seconds: float) -> QueryError:
    """Return the error of a query that was interrupted because of its time."""
    return QueryError(
        f"Interrupted after {seconds:g} s. Ask for fewer runs, ranks or steps, or give it longer: "
        "--timeout (mcp: --seconds), Limits(seconds=…)."
    )


def checked_rows(limit: int | None, count: int) -> None:
    """Refuse an answer with too many rows.

    Raises:
        QueryError: It has more than the limit.
    """
    if limit is not None and count > limit:
        raise QueryError(
            f"The answer has more than {limit:,} rows. Aggregate in SQL, add a LIMIT, or allow more: "
            "--max-rows, Limits(rows=…)."
        )


@contextmanager
def bounded_process(memory_limit: str | None) -> Iterator[None]:
    """Have the system refuse this process more memory than its engines may use, and half of that again.

    Some functions make texts of gigabytes out of small ones, which the engine does not count. For a
    process that does nothing else than ask: memory that it has already is not counted. Where the
    system has no such limit, nothing is done.

    Args:
        memory_limit: What the engine may use; None: its default.
    """
    try:
        import resource  # noqa: PLC0415 - not on Windows

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
    """Say where this process puts what does not fit into memory; made when it is needed."""
    return f"{gettempdir()}/{temporary_prefix()}spill"


@cache
def _half_of_disk() -> str:
    """Measure the disk, once in a process."""
    return f"{shutil.disk_usage(gettempdir()).free >> 21}MiB"
