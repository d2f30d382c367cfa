"""Expands files, folders, globs and archives into the files that may be traces."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from hta_sql.errors import TraceNotFoundError
from hta_sql.ingestion.vendors.mindspore import cluster_file, is_unsupported
from hta_sql.store.disk.manifest import CATALOG, MANIFEST
from hta_sql.text import counted
from hta_sql.traces.foreign_formats import PERFETTO
from hta_sql.traces.source import ARCHIVE_SUFFIXES, archive_members, located
from hta_sql.traces.unpack import COMPRESSED_SUFFIXES

log = logging.getLogger(__name__)

TRACE_SUFFIXES = (
    ".json",
    *(f".json{suffix}" for suffix in COMPRESSED_SUFFIXES),
    *COMPRESSED_SUFFIXES,
)
DUMP_NAME = re.compile(
    r"(?:^|[-_.])(?:rank|\w*trace|\w*dump|\w*recorder|fr)[-_\w]*?\d{1,9}(?:\.(?:pkl|pickle|bin))?$"
)
"""Names of Flight Recorder dumps: torch's default (nccl_trace_rank_3) and typical user choices."""
SNAPSHOT_SUFFIXES = (".pickle", ".pkl")
"""Suffixes of pickled memory snapshots; snapshots in JSON have the suffixes of traces."""
OWN_OUTPUT = re.compile(r"(_with_counters|^overlaid_|^memory_timeline)")
"""Files that profilers and HTA derive from traces; ingesting them would count events twice."""


def list_trace_paths(traces: str | Iterable[str]) -> list[str]:
    """Expand files, folders, globs and archives into sorted trace paths."""
    given = [traces] if isinstance(traces, str) else list(traces)
    paths: list[str] = []
    for item in given:
        paths.extend(_expand(str(item)))
    if not paths:
        raise TraceNotFoundError(
            f"No traces in {', '.join(map(repr, map(str, given)))}: looked for files named "
            f"{', '.join('*' + suffix for suffix in TRACE_SUFFIXES if suffix.startswith('.json'))}."
            f"{_perfetto_files(given)}"
        )
    return sorted(set(paths))


def _perfetto_files(given: Iterable[str]) -> str:
    """Return a sentence about Perfetto traces in folders without other traces."""
    names: list[str] = []
    for item in given:
        fs, root = located(str(item))
        names += fs.glob(f"{root.rstrip('/')}/*.pftrace") if fs.isdir(root) else []
    if not names:
        return ""
    return f" Found {counted(len(names), 'file')} *.pftrace; Perfetto's protobuf is not read. {PERFETTO.advice}"


def _expand(item: str) -> list[str]:
    fs, root = located(item)
    if any(c in item for c in "*?[") and not fs.exists(root):
        names = [name for name in fs.glob(root) if fs.isfile(name)]
    elif fs.isdir(root):
        names = _in_folder(_below(fs, str(root)), str(root), item)
    elif fs.exists(root) and root.endswith(ARCHIVE_SUFFIXES):
        return [
            url
            for url in archive_members(item)
            if _looks_like_trace(
                "/" + url.removeprefix("zip://").removeprefix("tar://").split("::")[0], ""
            )
        ]
    elif fs.exists(root):
        return [item]
    else:
        raise TraceNotFoundError(f"No such file or folder: {item!r}.")
    local = isinstance(fs.protocol, tuple) and "file" in fs.protocol
    return [str(name) if local else str(fs.unstrip_protocol(name)) for name in names]


def _below(fs: Any, root: str) -> list[str]:
    """List the files below a folder; log the folders that cannot be read."""
    if not isinstance(fs, LocalFileSystem):
        return [str(name) for name in fs.find(root)]

    def closed(error: OSError) -> None:
        log.warning("Skipped folder %r: %s.", error.filename, error.strerror)

    found: list[str] = []
    for place, folders, names in os.walk(root, onerror=closed):
        found.extend(f"{place}/{name}" for name in names)
        for path in (Path(place, name) for name in folders if not name.startswith(".")):
            if path.is_symlink():
                log.warning(
                    "Skipped folder %r: it is a symbolic link. To read it, pass its path.",
                    str(path),
                )
    return found


def _in_folder(names: list[str], root: str, item: str) -> list[str]:
    """Select the files that may be traces; stores are skipped, regardless of their names."""
    everything = set(names)
    folders = (name.removesuffix(f"/{MANIFEST}") for name in names if name.endswith(f"/{MANIFEST}"))
    stores = tuple(f"{folder}/" for folder in folders if f"{folder}/{CATALOG}" in everything)
    if f"{root.rstrip('/')}/" in stores:
        raise TraceNotFoundError(
            f"{item!r} is a store, not a folder of traces. Open it: hta-sql list {item}"
        )
    outside = [name for name in names if not name.startswith(stores)] if stores else names
    written = [name for name in outside if OWN_OUTPUT.search(name.rpartition("/")[2])]
    if written:
        log.info("Skipped files that were derived from traces: %s.", ", ".join(written))
    return [name for name in outside if _looks_like_trace(name, root)]


def _looks_like_trace(path: str, root: str) -> bool:
    below = path[len(root.rstrip("/")) + 1 :].split("/")
    if any(part.startswith(".") or part.endswith(".store") for part in below):
        return False
    name = below[-1]
    if cluster_file(name) or is_unsupported(name):
        return True
    if DUMP_NAME.search(name) or name.endswith(SNAPSHOT_SUFFIXES):
        return True
    return name.endswith(TRACE_SUFFIXES) and not OWN_OUTPUT.search(name)


def split_by_name(paths: Iterable[str], pattern: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """Separate paths by whether the file name contains a pattern.

    Returns:
        The paths without the pattern, and the paths with the pattern.
    """
    others: list[str] = []
    found: list[str] = []
    for path in paths:
        (found if pattern.search(path.rpartition("/")[2]) else others).append(path)
    return others, found
