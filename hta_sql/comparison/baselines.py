"""Baselines: named runs, each with a digest of its content.

The file with the names is in the store or at any other path, for example under version control.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hta_sql.errors import ParameterError, StoreError, nearest
from hta_sql.library.sql_files import query_sql
from hta_sql.store.disk.baselines import BASELINES, Baseline, read_baselines
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.locks import LOCK_TIMEOUT_S, store_lock
from hta_sql.store.disk.manifest import in_order, read_manifest
from hta_sql.store.query.trace_store import TraceStore

FORMAT = "hta_sql baselines"

_NAME = re.compile(r"[\w][\w.-]*")


def content_digest(store: TraceStore, run: str) -> str:
    """Return a digest of a run's content, which changes with any trace, event, time or name.

    The digest is the same if equal traces are ingested again, into a different store or by a
    different version. It covers what the manifest records about the traces, and the sums of their
    times.

    Raises:
        RankError: There is no such run.
    """
    store.check_scope({"runs": [run]})
    entries = [entry for entry in read_manifest(str(store.path)).entries if entry.run == run]
    contents = [
        [
            entry.rank,
            entry.fingerprint.size,
            entry.fingerprint.content,
            entry.event_count,
            entry.quarantined,
            entry.options.get("kernel_classes", ""),
        ]
        for entry in sorted(entries, key=in_order)
    ]
    times = [list(row) for row in store.sql(query_sql("runs", "times"), {"run": run}).rows()]
    return hashlib.sha256(json.dumps([contents, times]).encode()).hexdigest()


def is_name(text: str) -> bool:
    """Return whether a string is a valid baseline name."""
    return bool(_NAME.fullmatch(text))


class BaselineFile:
    """A file of baselines.

    Args:
        path: The file, or a store that contains ``baselines.json``; a path or an fsspec URL.
    """

    def __init__(self, path: str | Path) -> None:
        text = str(path)
        is_file = text.endswith(".json")
        folder, name = os.path.split(text) if is_file else (text, BASELINES)
        self._folder: StoreFolder = store_folder(folder or ".")
        self._name = name
        self._is_in_store = not is_file
        self.path = self._folder.path(name)

    def read(self) -> dict[str, Baseline]:
        """Return name ─▶ baseline; empty if the file does not exist.

        Raises:
            StoreError: The file is not a baselines file.
        """
        return read_baselines(self._folder, self._name)

    def find(self, name: str) -> Baseline:
        """Return a baseline, with the path of its store resolved so that it can be opened.

        Raises:
            ParameterError: There is no baseline of that name.
        """
        known = self.read()
        if name not in known:
            has = ", ".join(sorted(known)) if known else "none"
            raise ParameterError(
                f"No baseline {name!r} in {self.path!r}.{nearest(name, known)} Available: {has}."
            )
        found = known[name]
        if self._folder.local is None or "://" in found.store:
            return found
        return replace(found, store=os.path.normpath(self._folder.local / found.store))

    def set(self, name: str, store: TraceStore, run: str) -> Baseline:
        """Name a run; replaces an existing baseline of that name.

        Raises:
            ParameterError: The name is not valid.
            RankError: There is no such run.
        """
        if not is_name(name):
            raise ParameterError(
                f"{name!r} is not a valid name: use letters, digits, '.', '_' and '-'."
            )
        folder, here = store_folder(str(store.path)), self._folder.local
        place = os.path.relpath(folder.local, here) if folder.local and here else folder.root
        new = Baseline(name, place, run, content_digest(store, run))
        with self._changed() as baselines:
            baselines[name] = new
        return new

    def remove(self, name: str) -> None:
        """Remove a baseline; its run remains.

        Raises:
            ParameterError: There is no baseline of that name.
        """
        self.find(name)
        with self._changed() as baselines:
            baselines.pop(name, None)

    @contextmanager
    def _changed(self) -> Iterator[dict[str, Baseline]]:
        """Yield the baselines to be changed; write them atomically when the block ends."""
        lock = store_lock(self._folder, LOCK_TIMEOUT_S) if self._is_in_store else nullcontext()
        with lock:
            baselines = self.read()
            yield baselines
            named: list[dict[str, Any]] = [asdict(baselines[name]) for name in sorted(baselines)]
            content = {"format": FORMAT, "baselines": named}
            self._folder.replace(self._name, json.dumps(content, indent=1).encode() + b"\n")


def check_unchanged(baseline: Baseline, store: TraceStore, file: str) -> None:
    """Raise if the run of a baseline has changed since the baseline was set.

    Raises:
        StoreError: The content of the run has changed, or the run is missing.
    """
    subject = f"Baseline {baseline.name!r} of {file!r}: run {baseline.run!r} of {baseline.store!r}"
    if baseline.run not in store.runs():
        raise StoreError(f"{subject} no longer exists.")
    if content_digest(store, baseline.run) != baseline.digest:
        raise StoreError(
            f"{subject} was ingested again with different content. If this is intended: "
            f"hta-sql baseline set {baseline.name} {baseline.store}:{baseline.run}"
        )
