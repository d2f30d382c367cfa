"""The manifest defines the contents of a store; a catalog that contradicts it is not used."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql.store.catalog import build
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.manifest import CATALOG, MANIFEST
from tests.safety.conftest import busy_times_of

if TYPE_CHECKING:
    from tests.safety.conftest import BusyTimes, WriteTraces


@pytest.fixture
def between(tmp_path: Path, write_traces: WriteTraces) -> Path:
    """Return a store whose last ingest died after writing the manifest, but before the catalog.

    The first ingest had 100 µs of compute time, the last one 200 µs.
    """
    store = tmp_path / "job.store"
    hta_sql.ingest(write_traces({0: 100.0}), store).close()
    old = (store / CATALOG).read_bytes()
    hta_sql.ingest(write_traces({0: 200.0}), store).close()
    (store / CATALOG).unlink()
    (store / CATALOG).write_bytes(old)
    return store


def test_a_writable_store_gets_the_right_catalog(between: Path, busy_times: BusyTimes) -> None:
    """The first reader of a writable store replaces the stale catalog."""
    old = (between / CATALOG).read_bytes()
    assert busy_times(between) == {0: 200.0}
    assert (between / CATALOG).read_bytes() != old


def test_a_store_that_is_being_written_is_left_alone(
    between: Path, busy_times: BusyTimes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While an ingest holds the store lock, a reader builds the catalog in its cache folder."""
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setattr(build, "cache_folder", lambda _: cache)
    old = (between / CATALOG).read_bytes()
    with store_lock(store_folder(between)):
        assert busy_times(between) == {0: 200.0}
    assert (between / CATALOG).read_bytes() == old
    assert list(cache.rglob("*.duckdb"))


@pytest.mark.parametrize("damage", ["missing", "no database", "empty"])
def test_a_broken_catalog_is_replaced(between: Path, busy_times: BusyTimes, damage: str) -> None:
    """A corrupt or missing catalog is rebuilt without data loss."""
    path = between / CATALOG
    path.unlink()
    if damage != "missing":
        path.write_bytes(b"" if damage == "empty" else b"hello" * 1000)
    assert busy_times(between) == {0: 200.0}


def test_a_moved_store_that_cannot_be_written_opens(
    between: Path, tmp_path: Path, busy_times: BusyTimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a moved store is read-only, readers build and use a catalog in the cache."""

    def refuse(*_arguments: object) -> None:
        raise PermissionError(13, "read-only")

    moved = tmp_path / "moved.store"
    shutil.move(between, moved)
    monkeypatch.setattr("hta_sql.store.query.open_catalog.write_catalog", refuse)
    assert busy_times(moved) == {0: 200.0}


def test_an_open_store_keeps_its_answers(tmp_path: Path, write_traces: WriteTraces) -> None:
    """An open store returns the same answers while others ingest into it."""
    store = tmp_path / "job.store"
    with hta_sql.ingest(write_traces({0: 100.0}), store) as first:
        with hta_sql.ingest(write_traces({0: 200.0}), store) as second:
            assert busy_times_of(first) == {0: 100.0}
            assert busy_times_of(second) == {0: 200.0}
        hta_sql.ingest(tmp_path / "traces", store).close()
        assert busy_times_of(first) == {0: 100.0}, "nothing had changed, so nothing was removed"


def test_a_damaged_manifest_is_named(between: Path) -> None:
    """A manifest with invalid JSON or a different format or version is named in the error."""
    for content in ("{", "[]", '{"format": "other"}', '{"format": "hta_sql store"}'):
        (between / MANIFEST).write_text(content)
        with pytest.raises(hta_sql.StoreError, match="manifest"):
            hta_sql.open(between)
