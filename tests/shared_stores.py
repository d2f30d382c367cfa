"""Stores that are made once in a test run, whichever of its processes asks first."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hta_sql.ingestion.ingest import ingest_traces
from hta_sql.ingestion.options import IngestOptions, called_with
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.reports import IngestReport

MADE_WITHIN_S = 900


@called_with(IngestOptions)
def ingest_only(options: IngestOptions) -> IngestReport:
    """Read traces into a store as :func:`hta_sql.ingest` does, and do not open it.

    Returns:
        What was read.
    """
    return ingest_traces(options)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the store of a name, made now or by another process; for reading only."""
    top = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        top = top.parent  # that of all processes
    folder = top / name
    folder.mkdir(exist_ok=True)
    store = folder / "job.store"
    with store_lock(store_folder(folder), MADE_WITHIN_S):
        if not (folder / "made").exists():
            make(store)
            (folder / "made").touch()
    return store
