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
"""Size from which a file is read in a process of its own [bytes]; parsed JSON takes up to 12 times as much."""

UNPACKED_RATIO = 16
"""Approximate ratio of the unpacked to the compressed size of a file."""

READER_SHARE = 16
"""Size of a pickled snapshot divided by the memory that its reader needs.

The reader keeps 8 bytes per event, which has 200 bytes or more, and copies an array when it grows.
"""

BESIDE_BYTES = 200 << 20
"""Memory of the process in addition to the memory limit [bytes]."""

CPU_S, CPU_S_PER_MB = 60, 5
"""CPU time of the process [s], and for each megabyte of the file."""


def is_large(path: str, size: int) -> bool:
    """Return whether a file is read in a process of its own."""
    return unpacked_bytes(path, size) >= LARGE_BYTES


def unpacked_bytes(path: str, size: int) -> int:
    """Return the approximate unpacked size of a file [bytes]."""
    return size * (UNPACKED_RATIO if path.endswith(COMPRESSED_SUFFIXES) else 1)


def limit_process(path: str, size: int, memory_limit: str | None) -> None:
    """Limit this process, which only reads one file; on Windows and macOS, memory has no limit.

    Args:
        path: Path of the file.
        size: Size of the file [bytes].
        memory_limit: Memory limit of the engine.
    """
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - POSIX only

    seconds = CPU_S + CPU_S_PER_MB * (unpacked_bytes(path, size) >> 20)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    if sys.platform == "linux":
        allowed = size_of(memory_limit or duckdb_memory_limit(1)) + BESIDE_BYTES + _used_bytes()
        # The reader of snapshots needs this much, by which the engine's limit is reduced.
        allowed += unpacked_bytes(path, size) // READER_SHARE
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))


def out_of_memory(path: str, memory_limit: str | None) -> TraceFormatError:
    """Return the error for a file that takes more memory than the process may have."""
    limit = memory_limit or duckdb_memory_limit(1)
    return TraceFormatError(
        f"{path!r} needs more memory than the limit of {limit} and {BESIDE_BYTES >> 20} MiB. If you trust "
        "the file, raise the limit: --memory-limit (memory_limit=)."
    )


def _used_bytes() -> int:
    """Return the size of the data of this process [bytes]."""
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123 - no file of a user
        found = next(line for line in status if line.startswith("VmData:"))
    return int(found.split()[1]) << 10
