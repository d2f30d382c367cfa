"""Recognizes that the system refused threads, memory or disk space, and names the limit behind it.

Limits of a process (``ulimit``) and of a cgroup make unlike errors of Python, of the engine and of
libraries. Each of them becomes one message: what was refused, by which limit, what to do.
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
"""Of Python; of C++ and of a fork."""

_MAPPING = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")
"""Of the dynamic linker, which loads a library."""

LEAST_ADDRESS_SPACE = 2 << 30
"""Address space below which libraries end the process instead of raising an error [bytes]."""


def disk_refusal(error: BaseException) -> int | None:
    """Return ENOSPC, EDQUOT or EFBIG if an error of the system or the engine says so, else None."""
    if isinstance(error, OSError):
        return error.errno if error.errno in _DISK else None
    texts = {number: os.strerror(number) for number in _DISK}
    said = str(error) if _is_of_engine(error) else ""
    return next((number for number, text in texts.items() if text in said), None)


def disk_reason(number: int) -> tuple[str, str]:
    """Return what ENOSPC, EDQUOT or EFBIG means, and what to do."""
    if number == errno.EDQUOT:
        return "Disk quota exceeded", "Free space within the quota, or have it raised"
    if number == errno.EFBIG:
        size = _limit("RLIMIT_FSIZE")
        if size is None:
            return "The file system takes no file of this size", "Choose another file system"
        return f"File size limit of {size_text(size)} (ulimit -f)", "Raise it: ulimit -f unlimited"
    return "No space left", "Make room"


def is_out_of_threads(error: BaseException) -> bool:
    """Return whether the system refused a thread or a process."""
    if isinstance(error, OSError):
        return error.errno == errno.EAGAIN and error.filename is None
    if not isinstance(error, RuntimeError) and not _is_of_engine(error):
        return False
    # A pool of processes that cannot start its thread raises another error while it ends.
    before = error.__context__
    return _mentions(error, _THREADS) or (before is not None and is_out_of_threads(before))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether the system refused memory to Python or to the loader of a library."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or (
        isinstance(error, ImportError) and _mentions(error, _MAPPING)
    )


def threads_reason() -> str:
    """Return a message about a refused thread, with the limits that this process has."""
    return (
        f"The system refused a new thread or process{_limits()}. Raise the limit, or start fewer: "
        "--jobs 1 of an ingest."
    )


def memory_reason() -> str:
    """Return a message about refused memory, with the limits that this process has."""
    return (
        f"The system refused more memory{_limits()}. Raise the limit, or give the engine less: "
        "--memory-limit."
    )


def reason_of(error: object) -> str | None:
    """Return a message about an error that comes from a limit of the system; None for others."""
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
    """Return a warning if libraries may end this process for want of address space."""
    size = _limit("RLIMIT_AS")
    if size is None or size >= LEAST_ADDRESS_SPACE:
        return None
    return (
        f"This process may map {size_text(size)} (ulimit -v); below {size_text(LEAST_ADDRESS_SPACE)} "
        "a library may end it without an error. Raise the limit, and use --memory-limit to bound memory."
    )


def _limits() -> str:
    """List the limits that are set."""
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
    """Return a soft limit of this process; None if there is none."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return None
    soft, _ = resource.getrlimit(getattr(resource, name))
    return None if soft == resource.RLIM_INFINITY else soft


def _mentions(error: BaseException, texts: tuple[str, ...]) -> bool:
    return any(text in str(error) for text in texts)


def _is_of_engine(error: BaseException) -> bool:
    """Only an engine that was imported can have failed."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(error, duckdb.Error)
