"""A run that cannot be read does not prevent queries of the other runs."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import fsspec
import pytest

import hta_sql
from hta_sql.store.catalog import build
from hta_sql.store.catalog.build import build_catalog
from hta_sql.store.disk.manifest import MANIFEST, read_manifest
from tests.manifests import write_manifest
from tests.safety.conftest import busy_times_of, trace_of

if TYPE_CHECKING:
    from tests.cli.conftest import Cli
    from tests.safety.conftest import BusyTimes, WriteTraces


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest two runs into a store that each test copies."""
    folder = tmp_path_factory.mktemp("ingested")
    for rank, run in enumerate(("good", "bad")):
        (folder / run).mkdir()
        trace = json.dumps(trace_of(rank, 100.0 * (rank + 1)))
        (folder / run / f"rank{rank}.json").write_text(trace)
        hta_sql.ingest(folder / run, folder / "job.store").close()
    return folder


@pytest.fixture
def store(tmp_path: Path, ingested: Path) -> Path:
    """Copy the store with two runs: ``good`` has rank 0 of 100 µs, ``bad`` has rank 1 of 200 µs."""
    shutil.copytree(ingested, tmp_path, dirs_exist_ok=True)
    build_catalog(tmp_path / "job.store")
    return tmp_path / "job.store"


def lose(store: Path, run: str) -> None:
    """Delete the Parquet files of a run."""
    for folder in store.glob(f"tables/*/run={run}"):
        shutil.rmtree(folder)


def test_a_catalog_leaves_out_what_is_gone(
    store: Path, busy_times: BusyTimes, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning names a run with missing files and how to restore it, which works."""
    lose(store, "bad")
    build_catalog(store)
    assert busy_times(store) == {0: 100.0}
    assert "missing or corrupt Parquet files: 'bad'. Ingest their traces again" in caplog.text
    hta_sql.ingest(store.parent / "bad", store).close()
    assert busy_times(store) == {0: 100.0, 1: 200.0}


def test_the_command_names_what_it_leaves_out(cli: Cli, store: Path) -> None:
    """``hta-sql catalog`` warns about omitted runs; every client can query the remaining ones."""
    lose(store, "bad")
    done = cli("catalog", store)
    assert done.code == 0
    assert "omitted runs with missing or corrupt Parquet files" in done.err
    with duckdb.connect(str(store / "catalog.duckdb"), read_only=True) as con:
        assert con.sql("SELECT run, rank FROM gpu_ops").fetchall() == [("good", 0)]


def test_a_broken_file_is_found_where_the_engine_stumbles(
    store: Path, busy_times: BusyTimes
) -> None:
    """A corrupt file is found even if the engine reads a view's columns from this file."""
    for path in store.glob("tables/gpu_ops/run=bad/*/*.parquet"):
        path.write_bytes(b"PAR1")
    build_catalog(store)
    assert busy_times(store) == {0: 100.0}


def test_a_store_of_which_nothing_is_left_says_so(store: Path) -> None:
    """The error for a store without any readable run names a missing file."""
    lose(store, "bad")
    lose(store, "good")
    with pytest.raises(hta_sql.StoreError, match=r"No run in .* can be read: .*\.parquet"):
        build_catalog(store)


@pytest.mark.parametrize("name", ["abc\n", "\nabc", "a/b", "a b", "..", "é", "a\0"])
def test_a_name_that_is_no_name_is_refused(name: str, store: Path) -> None:
    """An invalid run name, such as one that ends with a line break, is refused."""
    with pytest.raises(hta_sql.ParameterError, match="Run name"):
        hta_sql.ingest(store.parent / "good", store, run=name)


def test_a_manifest_with_such_a_name_opens(
    store: Path, busy_times: BusyTimes, caplog: pytest.LogCaptureFixture
) -> None:
    """A manifest with an invalid run name, written by a version that accepted it, still opens."""
    for folder in store.glob("tables/*/run=bad"):
        folder.rename(folder.with_name("run=bad\n"))
    text = (store / MANIFEST).read_text()
    text = text.replace('"run": "bad"', '"run": "bad\\n"').replace("run=bad/", "run=bad\\n/")
    write_manifest(store, json.loads(text))
    assert busy_times(store) == {0: 100.0}
    assert r"'bad\n'" in caplog.text


def test_nothing_changes_before_the_catalog_is_built(
    store: Path, busy_times: BusyTimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ingest that cannot build the catalog changes neither the manifest nor any other file."""

    def files() -> set[str]:
        return {path.name for path in store.iterdir()}

    before, manifest = files(), (store / MANIFEST).read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(build, "scope_rows", lambda *_: pytest.fail("no catalog"))
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
    """A shard with missing files is skipped by publish until it is ingested again."""
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
    assert "Shard traces.2-of-2 is skipped: Parquet files of rank 1 are missing" in caplog.text
    assert busy_times(store) == {0: 100.0}
    assert [entry.rank for entry in read_manifest(store).entries] == [0]
    hta_sql.ingest_shard(traces, store, shard=(2, 2))
    hta_sql.publish(store, expect=2).close()
    assert busy_times(store) == {0: 100.0, 1: 101.0}


def test_an_open_store_goes_on_without_what_is_lost(
    store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A query that encounters a missing file logs a warning and returns the other runs.

    Once the file is back, the reopened store has all runs.
    """
    kept = store.with_name("materialized")
    shutil.copytree(store, kept)
    lose(store, "bad")
    with hta_sql.open(store) as opened:
        assert busy_times_of(opened) == {0: 100.0}
        assert (opened.runs(), opened.ranks()) == (["good"], [0])
        assert caplog.text.count("omitted runs with missing or corrupt Parquet files") == 1
        assert "Parquet files: 'bad'. Ingest their traces again" in caplog.text
        with pytest.raises(hta_sql.RankError, match=r"No run 'bad' in .*; available runs: good"):
            opened.run("temporal_breakdown", runs=["bad"])
        with pytest.raises(hta_sql.QueryError, match="no_such"):
            opened.sql("SELECT no_such FROM gpu_ops")
    shutil.copytree(kept, store, dirs_exist_ok=True)
    with hta_sql.open(store) as opened:
        assert busy_times_of(opened) == {0: 100.0, 1: 200.0}


@pytest.mark.parametrize("damage", ["footer", "no permission"])
def test_what_cannot_be_read_is_an_error_of_its_run_only(store: Path, damage: str) -> None:
    """An unreadable file of the right size is named, and the other run can be queried."""
    (path,) = store.glob("tables/gpu_ops/run=bad/*/*.parquet")
    content = path.read_bytes()
    if damage == "no permission":
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("root may read anything")
    else:
        path.write_bytes(bytes(len(content) - 8) + content[-8:])
    with hta_sql.open(store) as opened:
        for runs in (None, ["bad"]):
            with pytest.raises(hta_sql.StoreDamagedError, match=path.name):
                opened.run("temporal_breakdown", runs=runs)
        assert len(opened.run("temporal_breakdown", runs=["good"]).rows()) == 1


def test_many_threads_lose_a_run_at_once(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    """If a run gets lost while many threads query the store, the store is reopened only once."""
    lose(store, "bad")
    with hta_sql.open(store) as opened, ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: busy_times_of(opened), range(30)))
    assert found == [{0: 100.0}] * 30
    assert caplog.text.count("omitted runs") == 1


def test_nothing_left_of_an_open_store(store: Path) -> None:
    """If all files of an open store get lost, the error names a missing file."""
    with hta_sql.open(store) as opened:
        lose(store, "bad")
        lose(store, "good")
        with pytest.raises(hta_sql.StoreError, match=r"No run in .* can be read: .*\.parquet"):
            opened.run("temporal_breakdown")


def test_a_run_that_is_lost_at_a_url(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A lost run at a URL is omitted, although no data files are read to build the catalog."""
    memory = fsspec.filesystem("memory")
    for path in store.rglob("*"):
        if path.is_file() and "run=bad" not in path.as_posix():
            memory.pipe_file(f"/lost/{path.relative_to(store).as_posix()}", path.read_bytes())
    with hta_sql.open("memory://lost") as opened:
        assert busy_times_of(opened) == {0: 100.0}
    assert "'bad'" in caplog.text
