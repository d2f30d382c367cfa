"""Runs of a store: their properties and tags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import hta_sql
from hta_sql.store.disk.manifest import read_manifest
from tests.runs.writing import called, write_trace
from tests.shared_stores import ingest_only


def test_what_a_trace_says_of_its_run(trace: str, tmp_path: Path) -> None:
    """The table ``runs`` has the properties that the traces state."""
    with hta_sql.ingest(trace, tmp_path / "job.store", run="nightly") as store:
        (row,) = store.sql("FROM runs").records()
    known = {
        "run": "nightly",
        "rank_count": 1,
        "world_size": 8,
        "start_ns": 1_769_904_000_000_000_000,
        "dur": 100_000,
        "event_count": 1,
        "step_count": 0,
        "captured_at": "2026-02-01 00:00:00",
        "device_names": "NVIDIA H100",
        "host_count": 1,
        "host_name": "node17",
        "framework": "torch 2.9.1",
        "git_sha": "8c1f0e",
        "backend": "nccl",
        "nccl_version": "2.28.9",
        "tags": None,
    }
    assert known.items() <= row.items()
    assert row["ingested_at"] > "2026"
    assert row["size_bytes"] > 1000


def test_what_a_trace_does_not_say_is_not_known(tmp_path: Path) -> None:
    """A property that no trace states is NULL instead of a guess, until a tag supplies it."""
    bare = write_trace(tmp_path / "rank0.json")
    query = "SELECT world_size, captured_at, device_names, host_count, framework, git_sha FROM runs"
    with hta_sql.ingest(bare, tmp_path / "job.store", run="job") as store:
        assert store.sql(query).rows() == [(None,) * 6]
    hta_sql.tag_runs(tmp_path / "job.store", ["job"], {"git_sha": "77aa", "torch_version": "2.8"})
    with hta_sql.open(tmp_path / "job.store") as store:
        assert store.sql("SELECT framework, git_sha FROM runs").rows() == [("torch 2.8", "77aa")]


def test_tags_stay_when_traces_are_read_again(trace: str, tmp_path: Path) -> None:
    """Tags are kept when traces are read again, and new tags replace or remove old ones."""
    store = tmp_path / "job.store"
    ingest_only(trace, store, run="job", tags={"branch": "main", "batch": 32})
    ingest_only(trace, store, run="job", force=True)
    assert read_manifest(store).tags == {"job": {"batch": "32", "branch": "main"}}
    ingest_only(trace, store, run="job", tags={"branch": "new", "batch": ""})
    with hta_sql.open(store) as opened:
        assert opened.sql("FROM run_tags").rows() == [("job", "branch", "new")]
        assert opened.sql("SELECT tags FROM runs").rows() == [('{"branch":"new"}',)]


def test_tags_of_shards(tmp_path: Path) -> None:
    """A published run has the tags that its shards were ingested with."""
    traces = {rank: write_trace(tmp_path / f"rank{rank}.json") for rank in (0, 1)}
    store = tmp_path / "job.store"
    for number in (1, 2):
        hta_sql.ingest_shard(traces, store, run="job", shard=(number, 2), tags={"job": "llama"})
    hta_sql.publish(store, expect=2).close()
    assert read_manifest(store).tags == {"job": {"job": "llama"}}


@pytest.mark.parametrize("tags", [{"": "x"}, {"a b": "x"}, {"a": "x\ny"}, {"a": "x" * 1001}])
def test_tags_that_cannot_be(tags: dict[str, str], trace: str, tmp_path: Path) -> None:
    """Invalid tags are refused before anything is read."""
    with pytest.raises(hta_sql.ParameterError, match="ag '"):
        hta_sql.ingest(trace, tmp_path / "job.store", tags=tags)
    assert not (tmp_path / "job.store").exists()


def test_ingest_takes_tags(trace: str, tmp_path: Path) -> None:
    """``hta-sql ingest`` has an option for tags."""
    called("ingest", trace, "-o", tmp_path / "s", "--tag", "branch=main", "--tag", "note=a=b")
    assert read_manifest(tmp_path / "s").tags == {"rank0": {"branch": "main", "note": "a=b"}}


def test_trends_are_those_of_a_job(store: Path) -> None:
    """Runs with different tags are compared only on request. The commit does not identify a job."""
    hta_sql.tag_runs(store, ["day2"], {"git_sha": "77aa"})
    with hta_sql.open(store) as opened:

        def compared(**how: Any) -> list[tuple[object, ...]]:
            result = opened.run("kpi_trends", **how).records()
            columns = ("run", "job", "git_sha", "baseline_run_count")
            return [tuple(r[c] for c in columns) for r in result if r["kpi"] == "step_ns"]

        assert compared() == [
            ("day1", "job=a", None, 0),
            ("day2", "job=a", "77aa", 1),
            ("day3", "job=b", None, 0),
        ]
        assert [row[1::2] for row in compared(same_tags=[])] == [("", 0), ("", 1), ("", 2)]
        assert compared(same_tags=["git_sha"])[-1] == ("day2", "git_sha=77aa", "77aa", 0)


def test_in_the_portable_file(store: Path, tmp_path: Path) -> None:
    """The portable file contains the runs and their tags."""
    called("export", store, "-o", tmp_path / "all.duckdb")
    with duckdb.connect(str(tmp_path / "all.duckdb"), read_only=True) as con:
        assert con.sql("SELECT run, tags FROM runs ORDER BY run LIMIT 1").fetchall() == [
            ("day1", '{"job":"a"}')
        ]
