"""Chooses the location of the store for traces that are opened without a store path."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from hta_sql.machine import cache_folder
from hta_sql.store import STORE_NAME
from hta_sql.store.disk.run_names import default_run_name
from hta_sql.traces.names import is_utf8, path_of

log = logging.getLogger(__name__)


def absolute(path: str | os.PathLike[str], folder: str | None = None) -> str:
    """Make a local path absolute, preferring a file in ``folder``; return a URL unchanged.

    The store records the source of a trace, so a trace must have the same name from every working
    directory.
    """
    if "://" in os.fspath(path):
        return os.fspath(path)
    local = Path(path).expanduser()
    if folder and not local.is_absolute() and (Path(folder) / local).exists():
        local = Path(folder) / local
    # Not resolve(): users expect to see the link, not its target.
    return os.path.abspath(local)  # noqa: PTH100


def store_beside(traces: str | Iterable[str] | Mapping[int, str]) -> Path:
    """Choose the location of the store for a folder of traces, a list of paths or ``{rank: path}``.

    Returns:
        ``.hta_sql`` in the folder that contains all traces, if that folder is writable. Otherwise a
        folder in the user's cache whose name depends only on the trace paths.
    """
    if isinstance(traces, str):
        paths = [traces]
        folder = traces if Path(traces).is_dir() else _common_folder(paths)
    else:
        paths = sorted(traces.values() if isinstance(traces, Mapping) else traces)
        folder = _common_folder(paths)
    if folder and is_writable(Path(folder)):
        return Path(folder) / STORE_NAME
    place = cache_folder() / hashlib.sha256(os.fsencode("\n".join(paths))).hexdigest()[:16]
    log.info("Cannot write next to the traces; their store is %s.", place)
    return place


def is_writable(folder: Path) -> bool:
    """Return whether a store can be created or updated in a folder.

    Creates a temporary file there, because permission bits alone are not conclusive.
    """
    if not is_utf8(str(folder)):
        return False  # DuckDB cannot open such a path
    store = folder / STORE_NAME
    try:
        with tempfile.TemporaryFile(dir=store if store.is_dir() else folder):
            return True
    except OSError:
        return False


def selected(
    trace_files: Mapping[int, str] | Iterable[str] | None, trace_dir: str
) -> tuple[str | list[str] | dict[int, str], str]:
    """Return the traces that TraceAnalysis ingests, as absolute paths, and the name of the run."""
    folder = absolute(trace_dir)
    if trace_files is None:
        return folder, default_run_name(folder)
    traces: list[str] | dict[int, str]
    if isinstance(trace_files, Mapping):
        traces = {int(rank): absolute(path, folder) for rank, path in trace_files.items()}
    else:
        traces = [absolute(path, folder) for path in trace_files]
    # Each selection is its own run, so that a different selection from the same folder is not added
    # to it.
    return traces, f"{default_run_name(traces)}-{_selection_id(traces)}"


def lost_sources(sources: Mapping[int, str]) -> list[int]:
    """List the ranks whose local trace file no longer exists."""
    paths = {rank: path_of(source) for rank, source in sources.items()}
    return [rank for rank, path in paths.items() if "://" not in path and not Path(path).exists()]


def _selection_id(traces: Iterable[str] | Mapping[int, str]) -> str:
    """Return an eight-character digest that identifies a selection of trace files."""
    items = sorted(traces.items()) if isinstance(traces, Mapping) else sorted(traces)
    return hashlib.sha256(repr(items).encode()).hexdigest()[:8]


def _common_folder(paths: list[str]) -> str:
    if not paths or any("://" in path for path in paths):
        return ""
    return os.path.commonpath([Path(path).parent for path in paths])
