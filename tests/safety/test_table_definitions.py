"""A store of other table definitions says so, instead of failing somewhere in the engine."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql.store.manifest import MANIFEST

if TYPE_CHECKING:
    from tests.safety.conftest import BusyTimes, WriteTraces


def age(store: Path, *runs: str) -> None:
    """Make runs look as if another version had written them."""
    manifest = json.loads((store / MANIFEST).read_text())
    for entry in manifest["entries"]:
        if entry["run"] in runs:
            entry["schema"] = "other"
            entry["options"]["definitions"] = "other"
    (store / MANIFEST).write_text(json.dumps(manifest))


def test_a_store_of_other_definitions(
    tmp_path: Path, write_traces: WriteTraces, busy_times: BusyTimes
) -> None:
    """The error says what to do, and that works."""
    traces, store = write_traces({0: 100.0}), tmp_path / "job.store"
    hta_sql.ingest(traces, store).close()
    age(store, "traces")
    with pytest.raises(hta_sql.StoreVersionError, match=r"other table definitions.*again: hta-sql"):
        hta_sql.open(store)
    hta_sql.ingest(traces, store).close()
    assert busy_times(store) == {0: 100.0}


def test_some_runs_of_other_definitions(
    tmp_path: Path, write_traces: WriteTraces, caplog: pytest.LogCaptureFixture
) -> None:
    """They are left out, and named whenever the store is opened."""
    traces, store = write_traces({0: 100.0}), tmp_path / "job.store"
    hta_sql.ingest(traces, store, run="old").close()
    hta_sql.ingest(traces, store, run="new").close()
    age(store, "old")
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING), hta_sql.open(store) as opened:
            assert opened.runs() == ["new"]
            assert opened.sql("SELECT DISTINCT run FROM gpu_ops").rows() == [("new",)]
        assert "left out runs" in caplog.text
        assert "again: old." in caplog.text


def test_a_manifest_without_a_digest(tmp_path: Path, write_traces: WriteTraces) -> None:
    """Written before there were digests."""
    store = tmp_path / "job.store"
    hta_sql.ingest(write_traces({0: 100.0}), store).close()
    manifest = json.loads((store / MANIFEST).read_text())
    del manifest["entries"][0]["schema"]
    (store / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(hta_sql.StoreVersionError, match="Ingest the traces again"):
        hta_sql.open(store)


@pytest.mark.parametrize("key", ["schema_version", "writer"])
def test_a_store_of_a_newer_version(key: str, tmp_path: Path, write_traces: WriteTraces) -> None:
    """Whoever wrote it can read it: the remedy is to upgrade."""
    store = tmp_path / "job.store"
    hta_sql.ingest(write_traces({0: 100.0}), store).close()
    age(store, "traces")
    manifest = json.loads((store / MANIFEST).read_text())
    manifest[key] = {"schema_version": 2, "writer": "0.10.0"}[key]
    (store / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(hta_sql.StoreVersionError, match="upgrade with pip") as raised:
        hta_sql.open(store)
    assert "again" not in str(raised.value)
