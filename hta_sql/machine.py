"""How much of this machine we may use: cgroup limits before the host's numbers."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from hta_sql.errors import StoreError

log = logging.getLogger(__name__)

CGROUP = Path("/sys/fs/cgroup")
MEMORY_SHARE = 0.6
"""DuckDB's limit covers its buffers; the rest is Python, Arrow and the page cache."""


def cpu_count() -> int:
    """Count the cores this process may use."""
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
    """Share the memory between workers, in DuckDB's notation."""
    return f"{int(memory_bytes() * MEMORY_SHARE / workers) >> 20}MiB"


@cache
def cache_folder(name: str = "") -> Path:
    """Return a folder of this user for what can be made again; it is there, and can be written.

    ``$XDG_CACHE_HOME/hta_sql`` or ``~/.cache/hta_sql``; where neither can be used, one that ends
    with this process, with a warning.

    Args:
        name: Folder inside of it.

    Raises:
        StoreError: No temporary folder can be made either.
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
                "The cache cannot be written (%s): what would be kept there is made anew by each "
                "process. Set XDG_CACHE_HOME to a folder that can.",
                error,
            )
        folder = _temporary_folder() / name
        folder.mkdir(exist_ok=True)
        return folder


@cache
def _temporary_folder() -> Path:
    """Make a folder that is removed when the process ends that made it."""
    try:
        own = Path(tempfile.mkdtemp(prefix="hta_sql-"))
    except OSError as error:
        raise StoreError(f"There is no room for temporary files: {error}") from error
    atexit.register(_remove, own, os.getpid())
    return own


def _remove(folder: Path, maker: int) -> None:
    if os.getpid() == maker:  # and not a fork of it
        shutil.rmtree(folder, ignore_errors=True)
