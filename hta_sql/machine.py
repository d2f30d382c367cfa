"""Determine the CPUs and memory this process may use; default limits of a query.

Limits of the cgroup override values of the host.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import tempfile
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path

from hta_sql.errors import ParameterError, StoreError

log = logging.getLogger(__name__)

CGROUP = Path("/sys/fs/cgroup")
MEMORY_SHARE = 0.6
"""Share of memory for DuckDB's buffers; the rest is for Python, Arrow and the page cache."""

QUERY_SECONDS = 600.0
"""Default time limit of a query of unknown origin [s]."""

QUERY_ROWS = 10_000_000
"""Default maximum number of rows of its result."""

QUERY_SPILL = "10GiB"
"""Default maximum size of the data that it spills to the temporary folder."""

OUTSIDE_ENGINE = 232 << 20
"""Memory of a reader process outside DuckDB: Python, Arrow, texts and parsed columns [bytes]."""


def cpu_count() -> int:
    """Return the number of cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        quota, period = (CGROUP / "cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass
    return cores


def memory_bytes() -> int:
    """Return the memory this process may use [bytes]."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        total = 8 << 30
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            limit = (CGROUP / name).read_text().strip()
        except OSError:
            continue
        if limit.isdigit():
            total = min(total, int(limit))
    return total


def duckdb_memory_limit(workers: int = 1) -> str:
    """Return each worker's share of the memory, in DuckDB's notation."""
    return f"{int(memory_bytes() * MEMORY_SHARE / workers) >> 20}MiB"


def engine_share(limit: str) -> str:
    """Return the engine's share of a process's memory limit: at least half of it.

    Raises:
        ParameterError: The limit is not a size.
    """
    given = size_of(limit)
    return f"{max(given - OUTSIDE_ENGINE, given // 2) >> 10}KiB"


@cache
def cache_folder(name: str = "") -> Path:
    """Return a writable cache folder of this user, created if missing.

    The folder is in ``$XDG_CACHE_HOME/hta_sql`` or ``~/.cache/hta_sql``. If neither is usable, it
    is a temporary folder that is removed when this process ends, and a warning is logged.

    Args:
        name: Name of a subfolder.

    Raises:
        StoreError: No temporary folder can be created either.
    """
    configured = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(configured) if configured else Path.home() / ".cache") / "hta_sql" / name
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError) as error:
        if not _temporary_folder.cache_info().currsize:
            log.warning(
                "The cache is not writable (%s), so each process creates its files again. Set "
                "XDG_CACHE_HOME to a writable folder.",
                error,
            )
        folder = _temporary_folder() / name
        folder.mkdir(exist_ok=True)
        return folder


@cache
def _temporary_folder() -> Path:
    """Create a folder that is removed when the creating process ends."""
    try:
        return Path(tempfile.mkdtemp(prefix=temporary_prefix()))
    except OSError as error:
        raise StoreError(f"No disk space for temporary files: {error}") from error


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a context manager that creates a temporary folder.

    Folders left behind by a killed process are removed by the next process that creates one.
    """
    return tempfile.TemporaryDirectory(prefix=temporary_prefix())


def temporary_prefix() -> str:
    """Return the prefix of this process's files in the temporary folder."""
    return f"{_PREFIX}{_sign_of_life(os.getpid(), tempfile.gettempdir())}-"


def remove_temporary() -> None:
    """Remove this process's temporary folders; called at exit."""
    for (process, folder), token in list(_alive.items()):
        if process == os.getpid():  # a forked child must not remove its parent's folders
            _remove(folder, token)


def remove_left_by_dead() -> None:
    """Remove files that killed processes left in the temporary folder."""
    with suppress(ImportError, OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*{_LOCK}"):
            _remove_of_dead(path)


_PREFIX, _LOCK = "hta_sql-", ".lock"
_alive: dict[tuple[int, str], str] = {}


@cache
def _sign_of_life(process: int, folder: str) -> str:
    """Lock a file for the lifetime of this process; return the token in the file's name.

    The file is renamed only after it is locked, so no other process mistakes its owner for dead.
    """
    token = _alive[process, folder] = uuid.uuid4().hex[:16]
    if not _alive.keys() - {(process, folder)}:
        atexit.register(remove_temporary)
    with suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415 - unavailable on Windows, where nothing is cleaned up

        for path in Path(folder).glob(f"{_PREFIX}*{_LOCK}"):
            _remove_of_dead(path)
        unnamed = Path(folder, f".{_PREFIX}{token}")
        # Stays open until the process ends.
        file = os.open(unnamed, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unnamed.rename(Path(folder, f"{_PREFIX}{token}{_LOCK}"))
    return token


def _remove_of_dead(path: Path) -> None:
    import fcntl  # noqa: PLC0415 - as above

    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return  # owned by another user, or removed
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(str(path.parent), path.name.removeprefix(_PREFIX).removesuffix(_LOCK))
    except OSError:
        return  # the process is alive
    finally:
        os.close(file)


def _remove(folder: str, token: str) -> None:
    for path in Path(folder).glob(f"{_PREFIX}{token}-*"):
        shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        Path(folder, f"{_PREFIX}{token}{_LOCK}").unlink()


def size_of(text: str) -> int:
    """Parse a size in the engine's notation, such as ``512MiB`` or ``2GB`` [bytes].

    Raises:
        ParameterError: The string is not a size.
    """
    size = re.fullmatch(r"([\d.]+)\s*([KMGT]?)(i?)B", text, re.IGNORECASE)
    if not size:
        raise ParameterError(
            f"{text!r} is not a size: use a number with a unit, for example '2GiB'."
        )
    number, letter, binary = size.groups()
    return int(float(number) * (1024 if binary else 1000) ** " KMGT".index(letter.upper() or " "))


def resident_bytes(process: int) -> int:
    """Return the resident memory of a process [bytes]; 0 if unknown, as on Windows and macOS."""
    try:
        pages = Path(f"/proc/{process}/statm").read_bytes().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
