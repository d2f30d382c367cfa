"""Removing and renaming runs is safe despite concurrent readers and writers, and kills."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

import hta_sql
from hta_sql.store.catalog.build import build_catalog
from hta_sql.store.disk.manifest import read_manifest
from tests.safety.conftest import trace_of
from tests.safety.test_two_at_once import started
from tests.shared_stores import ingest_only

RUNS = {"a": 100, "b": 200, "c": 300}
"""Run ─▶ kernel time [µs]."""


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest three runs with one kernel each."""
    folder = tmp_path_factory.mktemp("three")
    for run, duration in RUNS.items():
        (folder / "rank0.json").write_text(json.dumps(trace_of(0, float(duration))))
        ingest_only(folder / "rank0.json", folder / "job.store", run=run)
    return folder / "job.store"


@pytest.fixture
def store(three: Path, tmp_path: Path) -> Path:
    """Copy the store with three runs, so that a test can change it."""
    copied = Path(shutil.copytree(three, tmp_path / "job.store"))
    build_catalog(copied)
    return copied


def busy(store: hta_sql.TraceStore) -> dict[str, int]:
    """Return the kernel time of each run in an open store [µs]."""
    return dict(store.sql("SELECT run, sum(dur)::BIGINT // 1000 FROM gpu_ops GROUP BY run").rows())


def named(store: Path) -> bool:
    """Return whether the Parquet files on disk are exactly the ones in the manifest."""
    files = {p.relative_to(store).as_posix() for p in (store / "tables").rglob("*.parquet")}
    return files == read_manifest(store).named_files()


def test_a_reader_goes_on_with_what_is_left(store: Path) -> None:
    """After a removal, a reader sees the remaining runs, and an error names the removed one."""
    with hta_sql.open(store) as reader:
        rows = reader.sql("FROM gpu_ops WHERE run = 'a'")
        hta_sql.remove_runs(store, ["a"])
        assert busy(reader) == {"b": 200, "c": 300}
        assert len(rows) == 1  # the result of an earlier query
        with pytest.raises(hta_sql.RankError, match="No run 'a'"):
            reader.run("temporal_breakdown", runs=["a"])
        hta_sql.rename_run(store, "b", "z")
        assert busy(reader) == {"z": 200, "c": 300}
        assert reader.runs() == ["c", "z"]


def test_a_client_that_has_the_catalog_open(store: Path) -> None:
    """A client with an outdated catalog gets an error that names the file, not wrong rows."""
    with duckdb.connect(str(store / "catalog.duckdb"), read_only=True) as con:
        hta_sql.remove_runs(store, ["b"])
        with pytest.raises(duckdb.Error, match="run=b"):
            con.sql("SELECT sum(dur) FROM gpu_ops").fetchall()
    with duckdb.connect(str(store / "catalog.duckdb"), read_only=True) as con:
        assert con.sql("SELECT sum(dur) FROM gpu_ops").fetchall() == [(400_000,)]


def test_readers_beside_changes(store: Path) -> None:
    """While a run is renamed and removed, each query sees either the whole run or nothing of it."""
    name = "a"
    stop: list[bool] = []

    def read() -> set[frozenset[int]]:
        seen: set[frozenset[int]] = set()
        with hta_sql.open(store) as reader:
            while not stop or not seen:
                seen.add(frozenset(busy(reader).values()))
        return seen

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(read)
        try:
            for change in range(2):
                hta_sql.rename_run(store, name, f"a{change}")
                name = f"a{change}"
            hta_sql.remove_runs(store, [name])
        finally:
            stop.append(True)
        seen = asked.result()
    assert seen <= {frozenset({100, 200, 300}), frozenset({200, 300})}
    assert named(store)


def test_two_writers_at_once(store: Path, tmp_path: Path) -> None:
    """A concurrent removal, rename and ingest run one after the other, and nothing is lost."""
    (tmp_path / "rank0.json").write_text(json.dumps(trace_of(0, 400.0)))
    head = "import hta_sql, sys; store = sys.argv[1]; "
    codes = (
        "hta_sql.remove_runs(store, ['a'])",
        "hta_sql.rename_run(store, 'b', 'z'); hta_sql.tag_runs(store, ['z'], {'x': 1})",
        "hta_sql.ingest(sys.argv[2], store, run='d', tags={'y': 2}).close()",
    )
    for process in [started(head + code, store, tmp_path / "rank0.json") for code in codes]:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    with hta_sql.open(store) as opened:
        assert busy(opened) == {"c": 300, "d": 400, "z": 200}
    assert read_manifest(store).tags == {"d": {"y": "2"}, "z": {"x": "1"}}
    assert named(store)


@pytest.mark.slow(reason="faults")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks what it kills")
@pytest.mark.parametrize("change", ["remove", "rename"])
def test_killed_at_each_place(change: str, store: Path) -> None:
    """After a kill at any file change, readers see the old or the new store."""
    program = [sys.executable, str(Path(__file__).with_name("change_rounds.py"))]
    done = subprocess.run(  # noqa: S603 - our own program
        [*program, str(store), change], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    before = {run: time * 1000 for run, time in RUNS.items()}
    after = {"b": 200_000, "c": 300_000} | ({"z": 100_000} if change == "rename" else {})
    changed = seen.index(after)
    assert 0 < changed < len(seen) - 1  # files are deleted after the manifest is written
    assert seen == [before] * changed + [after] * (len(seen) - changed)
