"""One run that cannot be read does not keep the others from answering."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql.store import catalog
from hta_sql.store.catalog import build_catalog
from hta_sql.store.manifest import MANIFEST, read_manifest

if TYPE_CHECKING:
    from tests.safety.conftest import BusyTimes, WriteTraces


@pytest.fixture
def store(tmp_path: Path, write_traces: WriteTraces) -> Path:
    """Two runs: ``good`` has rank 0 of 100 µs, ``bad`` rank 1 of 200 µs."""
    path = tmp_path / "job.store"
    hta_sql.ingest(write_traces({0: 100.0}, "good"), path).close()
    hta_sql.ingest(write_traces({1: 200.0}, "bad"), path).close()
    return path


def lose(store: Path, run: str) -> None:
    """Delete the Parquet of a run."""
    for folder in store.glob(f"tables/*/run={run}"):
        shutil.rmtree(folder)


def test_a_catalog_leaves_out_what_is_gone(
    store: Path, busy_times: BusyTimes, caplog: pytest.LogCaptureFixture
) -> None:
    """By name, with a warning that says what to do; the traces read again heal it."""
    lose(store, "bad")
    build_catalog(store)
    assert busy_times(store) == {0: 100.0}
    assert "missing or broken; ingest their traces again" in caplog.text
    assert caplog.text.endswith(": 'bad'.\n")
    hta_sql.ingest(store.parent / "bad", store).close()
    assert busy_times(store) == {0: 100.0, 1: 200.0}


def test_a_broken_file_is_found_where_the_engine_stumbles(
    store: Path, busy_times: BusyTimes
) -> None:
    """The columns of a view are read from the first of its files: a broken one there."""
    for path in store.glob("tables/gpu_ops/run=bad/*/*.parquet"):
        path.write_bytes(b"PAR1")
    build_catalog(store)
    assert busy_times(store) == {0: 100.0}


def test_a_store_of_which_nothing_is_left_says_so(store: Path) -> None:
    """And which file it was."""
    lose(store, "bad")
    lose(store, "good")
    with pytest.raises(hta_sql.StoreError, match=r"No run of .* can be read: .*\.parquet"):
        build_catalog(store)


@pytest.mark.parametrize("name", ["abc\n", "\nabc", "a/b", "a b", "..", "é", "a\0"])
def test_a_name_that_is_no_name_is_refused(name: str, store: Path) -> None:
    """Whatever stands at its end: a line break there went through, and no store opened any more."""
    with pytest.raises(hta_sql.ParameterError, match="Run name"):
        hta_sql.ingest(store.parent / "good", store, run=name)


def test_a_manifest_with_such_a_name_opens(
    store: Path, busy_times: BusyTimes, caplog: pytest.LogCaptureFixture
) -> None:
    """Written by a version that let it through."""
    for folder in store.glob("tables/*/run=bad"):
        folder.rename(folder.with_name("run=bad\n"))
    text = (store / MANIFEST).read_text()
    text = text.replace('"run": "bad"', '"run": "bad\\n"').replace("run=bad/", "run=bad\\n/")
    (store / MANIFEST).write_text(text)
    assert busy_times(store) == {0: 100.0}
    assert r"'bad\n'" in caplog.text


def test_nothing_changes_before_the_catalog_is_built(
    store: Path, busy_times: BusyTimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ingest whose catalog fails leaves the old manifest, the old catalog and no other file."""

    def files() -> set[str]:
        return {path.name for path in store.iterdir()}

    before, manifest = files(), (store / MANIFEST).read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(catalog, "_rank_scope", lambda *_: pytest.fail("no catalog"))
        with pytest.raises(pytest.fail.Exception):
            hta_sql.ingest(store.parent / "good", store, run="new")
    assert (store / MANIFEST).read_bytes() == manifest
    assert files() == before
    assert busy_times(store) == {0: 100.0, 1: 200.0}


def test_a_shard_whose_parquet_is_gone_is_not_published(
    tmp_path: Path,
    write_traces: WriteTraces,
    busy_times: BusyTimes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The others are; the shard is missing until it is run again."""
    store, traces = tmp_path / "job.store", write_traces({0: 100.0, 1: 101.0})
    for number in (1, 2):
        hta_sql.ingest_shard(traces, store, shard=(number, 2))
    for folder in store.glob("tables/*/*/rank=1"):
        shutil.rmtree(folder)
    with pytest.raises(hta_sql.StoreError, match="1 of 2 shards are missing"):
        hta_sql.publish(store, expect=2)
    with hta_sql.publish(store) as opened:
        assert opened.published
        assert opened.published.missing == ["traces.2-of-2 (started, not finished)"]
    assert "Shard traces.2-of-2 is left out: Parquet of rank 1 is gone" in caplog.text
    assert busy_times(store) == {0: 100.0}
    assert [entry.rank for entry in read_manifest(store).entries] == [0]
    hta_sql.ingest_shard(traces, store, shard=(2, 2))
    hta_sql.publish(store, expect=2).close()
    assert busy_times(store) == {0: 100.0, 1: 101.0}


def test_an_ingest_reads_again_what_is_gone(
    store: Path, busy_times: BusyTimes, caplog: pytest.LogCaptureFixture
) -> None:
    """The trace is unchanged, but what was made of it is not there."""
    lose(store, "bad")
    with hta_sql.ingest(store.parent / "bad", store) as opened:
        assert opened.ingested
        assert opened.ingested.unchanged == []
    assert busy_times(store) == {0: 100.0, 1: 200.0}
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
