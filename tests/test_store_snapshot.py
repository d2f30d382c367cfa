"""Tests that the store that an ingest returns is a snapshot, although it is opened lazily."""

from __future__ import annotations

import gc
import pickle
import shutil
from pathlib import Path

import pytest

import hta_sql
from hta_sql.store.catalog.build import build_catalog

TRACES = Path(__file__).parent / "traces"
FIRST, SECOND = (str(TRACES / f"{name}.json") for name in ("arguments", "aten_climbing"))


def descriptors() -> list[str]:
    """Return the paths of this process's open files."""
    folder = Path("/proc/self/fd")
    return [str(file.readlink()) for file in folder.iterdir() if file.is_symlink()]


def test_it_is_opened_at_the_first_question(tmp_path: Path) -> None:
    """The returned store opens no connection until its first query."""
    store = hta_sql.ingest(FIRST, tmp_path / "s", run="one")
    assert store._connection._opened is None
    assert store.runs() == ["one"]
    assert store._connection._opened
    assert store.catalog_path == str(tmp_path / "s" / "catalog.duckdb")


def test_what_comes_later_is_not_in_it(tmp_path: Path) -> None:
    """The store keeps its snapshot, whether it is first queried before or after another ingest."""
    asked = hta_sql.ingest(FIRST, tmp_path / "s", run="one")
    assert asked.runs() == ["one"]
    unasked = hta_sql.ingest(FIRST, tmp_path / "s", run="one")
    last = hta_sql.ingest(SECOND, tmp_path / "s", run="two")
    for store in (asked, unasked):
        assert store.runs() == ["one"]
        assert store.sql("SELECT DISTINCT run FROM cpu_ops").rows() == [("one",)]
    assert last.runs() == ["one", "two"]
    assert unasked.catalog_path == last.catalog_path


def test_a_catalog_that_was_built_anew_serves_it(tmp_path: Path) -> None:
    """A rebuilt catalog, which is a new file with the same manifest, serves the same snapshot."""
    store = hta_sql.ingest(FIRST, tmp_path / "s", run="one")
    build_catalog(tmp_path / "s")
    assert store.runs() == ["one"]


def test_a_catalog_of_another_version_is_replaced(tmp_path: Path) -> None:
    """An ingest without new traces leaves a broken catalog; the first query replaces it."""
    hta_sql.ingest(FIRST, tmp_path / "s", run="one").close()
    catalog = tmp_path / "s" / "catalog.duckdb"
    catalog.write_bytes(b"no catalog at all")
    store = hta_sql.ingest(FIRST, tmp_path / "s", run="one")
    assert store.ingested
    assert not store.ingested.results
    assert store.runs() == ["one"]


def test_a_store_that_is_gone_says_so(tmp_path: Path) -> None:
    """Querying a deleted store is an error, although its runs are still known."""
    store = hta_sql.ingest(FIRST, tmp_path / "s", run="one")
    shutil.rmtree(tmp_path / "s")
    assert store.runs() == ["one"]
    with pytest.raises(hta_sql.HtaSqlError):
        store.run("temporal_breakdown").rows()


def test_it_travels_and_closes_unasked(tmp_path: Path) -> None:
    """An unpickled store opens the same store; closed or deleted objects leave no file open."""
    store = hta_sql.ingest(FIRST, tmp_path / "s", run="one")
    assert pickle.loads(pickle.dumps(store)).runs() == ["one"]  # noqa: S301 - ours
    store.close()
    with pytest.raises(hta_sql.StoreError, match="is closed"):
        store.runs()
    del store
    hta_sql.ingest(FIRST, tmp_path / "s", run="one")
    gc.collect()
    if Path("/proc/self/fd").exists():
        assert not [name for name in descriptors() if str(tmp_path) in name]
