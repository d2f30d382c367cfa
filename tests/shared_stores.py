"""Stores that are ingested once per test run, by the first test process that needs them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hta_sql.ingestion.ingest import ingest_traces
from hta_sql.ingestion.options import IngestOptions, called_with
from hta_sql.store.catalog.build import publish_manifest
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.manifest import read_manifest
from hta_sql.store.disk.reports import IngestReport

MADE_WITHIN_S = 900


@called_with(IngestOptions)
def ingest_only(options: IngestOptions) -> IngestReport:
    """Ingest traces into a store as :func:`hta_sql.ingest` does, but do not open the store.

    Returns:
        The ingest report.
    """
    return ingest_traces(options)


def drop_materialized(store: Path) -> None:
    """Remove the derived tables and answers of a store, as if none could be computed."""
    folder = store_folder(store)
    with store_lock(folder):
        publish_manifest(folder, replace(read_manifest(folder), materialized=[]))


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the path of a named read-only store; create it unless another process already did."""
    top = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        top = top.parent  # the folder that all processes share
    folder = top / name
    folder.mkdir(exist_ok=True)
    store = folder / "job.store"
    with store_lock(store_folder(folder), MADE_WITHIN_S):
        if not (folder / "made").exists():
            make(store)
            (folder / "made").touch()
    return store
