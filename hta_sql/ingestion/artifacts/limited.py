"""Limits the memory and time of a process that reads a large file which is not a trace.

Such files are parsed by Python, whose memory the engine's limit does not cover. Small files cannot
take much. A large file is read in a process of its own, which may die: the file is then refused,
with the reason, and the process of the user goes on.
"""

from __future__ import annotations

import sys

from hta_sql.errors import TraceFormatError
from hta_sql.machine import duckdb_memory_limit, size_of
from hta_sql.traces.unpack import COMPRESSED_SUFFIXES

LARGE_BYTES = 8 << 20
"""Minimum size of a file that is read in a separate process [bytes]; parsed JSON takes up to 12 times as much."""

UNPACKED_RATIO = 16
"""Approximate ratio of the unpacked to the compressed size of a file."""

READER_SHARE = 16
"""Size of a pickled snapshot divided by the memory that its reader needs.

The reader keeps 8 bytes per event, which has 200 bytes or more, and copies an array when it grows.
"""

BESIDE_BYTES = 200 << 20
"""Memory of the process in addition to the memory limit [bytes]."""

IDLE_BYTES = 128 << 20
"""Memory of a process that has imported the engine [bytes]."""

CPU_S, CPU_S_PER_MB = 60, 5
"""CPU time of the process [s], and for each megabyte of the file."""


def is_large(path: str, size: int) -> bool:
    """Return whether a file is read in a separate process."""
    return unpacked_bytes(path, size) >= LARGE_BYTES


def unpacked_bytes(path: str, size: int) -> int:
    """Return the approximate unpacked size of a file [bytes]."""
    return size * (UNPACKED_RATIO if path.endswith(COMPRESSED_SUFFIXES) else 1)


def limit_time(path: str, size: int) -> None:
    """Limit the CPU time of this process, which only reads one file; on Windows, it has no limit.

    Args:
        path: Path of the file.
        size: Size of the file [bytes].
    """
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - POSIX only

    seconds = CPU_S + CPU_S_PER_MB * (unpacked_bytes(path, size) >> 20)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def most_memory(path: str, size: int, memory_limit: str | None) -> int:
    """Return how much resident memory the process that reads a file may use [bytes].

    The system's own limits count addresses. The engine's allocator keeps four times as many as it
    uses (1.7 GB of addresses, 0.4 GB of memory for a snapshot of 1 GB), so they cannot hold this.
    """
    limit = size_of(memory_limit or duckdb_memory_limit(1))
    # The reader of snapshots needs its share, by which the engine's limit is reduced.
    return limit + IDLE_BYTES + BESIDE_BYTES + unpacked_bytes(path, size) // READER_SHARE


def out_of_memory(path: str, memory_limit: str | None) -> TraceFormatError:
    """Return the error for a file that takes more memory than the process may have."""
    limit = memory_limit or duckdb_memory_limit(1)
    return TraceFormatError(
        f"{path!r} needs more memory than the limit of {limit} and {(IDLE_BYTES + BESIDE_BYTES) >> 20} "
        "MiB. If you trust the file, raise the limit: --memory-limit (memory_limit=)."
    )
