"""Recognize when the system refuses threads, memory or disk space, and name the limit.

Process limits (``ulimit``) and cgroup limits cause different errors in Python, DuckDB and
libraries. All of them are reported by a single message that names the refused resource, the limit,
and what to do.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from hta_sql.text import size_text

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PIDS_MAX = Path("/sys/fs/cgroup/pids.max")

_THREADS = ("can't start new thread", os.strerror(errno.EAGAIN))
"""Error texts for a refused thread: Python's own, and that of C++ and fork."""

_MAPPING = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")
"""Error texts of the dynamic linker when it loads a library."""

_ALLOCATION = ("bad allocation", "bad_alloc")
"""Error texts of the engine when the system refuses memory, unlike at its own limit."""

LEAST_ADDRESS_SPACE = 2 << 30
"""Address space below which libraries end the process instead of raising an error [bytes]."""


def disk_refusal(error: BaseException) -> int | None:
    """Return the errno (ENOSPC, EDQUOT or EFBIG) of a system or engine error, or None."""
    if isinstance(error, OSError):
        return error.errno if error.errno in _DISK else None
    texts = {number: os.strerror(number) for number in _DISK}
    said = str(error) if _is_of_engine(error) else ""
    return next((number for number, text in texts.items() if text in said), None)


def disk_reason(number: int) -> tuple[str, str]:
    """Return a description of ENOSPC, EDQUOT or EFBIG, and the remedy."""
    if number == errno.EDQUOT:
        return "Disk quota exceeded", "Free disk space, or request a larger quota"
    if number == errno.EFBIG:
        size = _limit("RLIMIT_FSIZE")
        if size is None:
            return "File too large for the file system", "Choose another file system"
        return (
            f"File size limit of {size_text(size)} (ulimit -f) reached",
            "Raise the limit: ulimit -f unlimited",
        )
    return "No space left", "Free disk space"


def is_out_of_threads(error: BaseException) -> bool:
    """Return whether the system refused a thread or a process."""
    if isinstance(error, OSError):
        return error.errno == errno.EAGAIN and error.filename is None
    if not isinstance(error, RuntimeError) and not _is_of_engine(error):
        return False
    # A process pool that cannot start its thread raises another error during its shutdown.
    before = error.__context__
    return _mentions(error, _THREADS) or (before is not None and is_out_of_threads(before))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether the system refused memory to Python, the engine or the dynamic linker."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, ImportError) and _mentions(error, _MAPPING))
        or (_is_of_engine(error) and _mentions(error, _ALLOCATION))
    )


def threads_reason() -> str:
    """Return a message about a refused thread, with the limits of this process."""
    return (
        f"The system refused a new thread or process{_limits()}. Raise the limit, or start fewer processes: "
        "hta-sql ingest --jobs 1."
    )


def memory_reason() -> str:
    """Return a message about refused memory, with the limits of this process."""
    return (
        f"The system refused to allocate more memory{_limits()}. Raise the limit, or lower the limit "
        "of the engine: --memory-limit."
    )


def reason_of(error: object) -> str | None:
    """Return a message about an error caused by a system limit, or None for other errors."""
    if not isinstance(error, BaseException):
        return None
    if is_out_of_threads(error):
        return threads_reason()
    if is_out_of_memory(error):
        return memory_reason()
    number = disk_refusal(error)
    if number is None:
        return None
    what, remedy = disk_reason(number)
    if number == errno.ENOSPC and isinstance(error, OSError):
        what = error.strerror or what
    names = [str(getattr(error, name, None) or "") for name in ("filename", "filename2")]
    return f"{': '.join([what, *map(repr, filter(None, names))])}. {remedy}."


def tight_address_space() -> str | None:
    """Return a warning if a low address space limit may make libraries end this process."""
    size = _limit("RLIMIT_AS")
    if size is None or size >= LEAST_ADDRESS_SPACE:
        return None
    return (
        f"The address space of this process is limited to {size_text(size)} (ulimit -v); below "
        f"{size_text(LEAST_ADDRESS_SPACE)}, a library may terminate the process without an error message. "
        "Raise the limit, and use --memory-limit to limit memory use."
    )


def _limits() -> str:
    """Return the limits that are set, as a string in parentheses."""
    found = list(_set_limits())
    return f" ({'; '.join(found)})" if found else ""


def _set_limits() -> Iterator[str]:
    processes = _limit("RLIMIT_NPROC")
    if processes is not None:
        yield f"threads of this user: {processes:,}, ulimit -u"
    for name, option in (("RLIMIT_AS", "ulimit -v"), ("RLIMIT_DATA", "ulimit -d")):
        size = _limit(name)
        if size is not None:
            yield f"memory of this process: {size_text(size)}, {option}"
    try:
        allowed = _PIDS_MAX.read_text("ascii").strip()
    except OSError:
        return
    if allowed.isdigit():
        yield f"threads of this container: {int(allowed):,}, pids.max"


def _limit(name: str) -> int | None:
    """Return a soft limit of this process, or None if unlimited."""
    try:
        import resource  # noqa: PLC0415 - unavailable on Windows
    except ImportError:
        return None
    soft, _ = resource.getrlimit(getattr(resource, name))
    return None if soft == resource.RLIM_INFINITY else soft


def _mentions(error: BaseException, texts: tuple[str, ...]) -> bool:
    return any(text in str(error) for text in texts)


def _is_of_engine(error: BaseException) -> bool:
    """Return whether DuckDB raised an error, without importing DuckDB."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(error, duckdb.Error)
