"""Tests of which traces TraceAnalysis opens, and where it puts their store."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hta_sql
from hta_sql.errors import RankError, TraceNotFoundError
from hta_sql.hta.trace_analysis import TraceAnalysis
from hta_sql.machine import cache_folder
from hta_sql.store.disk import location as trace_places
from hta_sql.synthetic import Job
from tests.trace_analysis.writing import kernel, write_trace


def test_the_store_lies_beside_the_traces(tmp_path: Path) -> None:
    """The store is in a hidden folder next to the traces, so that it is not taken for traces."""
    write_trace(tmp_path, "a.json", [kernel(0, 10)])
    for _ in range(2):
        with TraceAnalysis(trace_dir=tmp_path) as analysis:
            assert analysis.store.path == tmp_path / ".hta_sql"
            assert analysis.store.ranks() == [0]


def test_the_second_opening_reads_no_trace(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    """The second opening ingests nothing, and the Parquet files do not change."""
    folder = job.files[0].parent
    TraceAnalysis(trace_dir=folder).close()
    files = {path: path.stat().st_mtime_ns for path in (folder / ".hta_sql").rglob("*.parquet")}
    with caplog.at_level(logging.INFO, logger="hta_sql"):
        started = time.perf_counter()
        TraceAnalysis(trace_dir=folder).close()
    assert time.perf_counter() - started < 5
    assert "Ingested" not in caplog.text
    again = {path: path.stat().st_mtime_ns for path in (folder / ".hta_sql").rglob("*.parquet")}
    assert again == files


@pytest.fixture
def forgotten_cache() -> Iterator[None]:
    """Clear the memoized cache folder before and after a test."""
    cache_folder.cache_clear()
    yield
    cache_folder.cache_clear()


@pytest.mark.usefixtures("forgotten_cache")
def test_a_read_only_folder_has_its_store_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal traces use the same store in the cache, and different traces use a different one."""
    (tmp_path / "cache" / "hta_sql").mkdir(parents=True)
    # Creating a catalog template takes seconds.
    (tmp_path / "cache" / "hta_sql" / "templates").symlink_to(cache_folder("templates"))
    cache_folder.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(trace_places, "is_writable", lambda _: False)
    places = []
    for name in ("one", "one", "two"):
        write_trace(tmp_path / name, "a.json", [kernel(0, 10)])
        with TraceAnalysis(trace_dir=tmp_path / name) as analysis:
            places.append(analysis.store.path)
    assert places[0] == places[1] != places[2]
    assert all(place.parent == tmp_path / "cache" / "hta_sql" for place in places)
    assert not (tmp_path / "one" / ".hta_sql").exists()


@pytest.mark.usefixtures("forgotten_cache")
def test_the_cache_is_in_the_home_folder_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without XDG_CACHE_HOME the cache is in ~/.cache/hta_sql."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    place = trace_places.store_beside("s3://bucket/traces")
    assert place.parent == tmp_path / ".cache" / "hta_sql"


def test_whether_a_folder_is_writable_is_detected_by_trying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial write detects a read-only mount, which refuses files whatever the permissions are."""

    def refused(dir: Path) -> None:  # noqa: A002 - a parameter of tempfile
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(dir))

    assert trace_places.is_writable(tmp_path)
    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    assert not trace_places.is_writable(tmp_path)


def test_files_and_ranks_can_be_given(tmp_path: Path) -> None:
    """In {rank: path}, the caller sets the rank, and paths are relative to trace_dir."""
    write_trace(tmp_path, "a.json", [kernel(0, 10)], rank=0)
    write_trace(tmp_path, "b.json", [kernel(0, 30)], rank=1)
    files = {5: "b.json", 6: str(tmp_path / "a.json")}
    with TraceAnalysis(trace_files=files, trace_dir=str(tmp_path)) as analysis:
        frame = analysis.get_temporal_breakdown()
        assert analysis.store.path == tmp_path / ".hta_sql"
    assert dict(zip(frame["rank"], frame["kernel_time(us)"], strict=True)) == {5: 30.0, 6: 10.0}


def test_one_selection_of_files_does_not_leak_into_the_next(tmp_path: Path) -> None:
    """Opening rank 1 after rank 0 from the same folder gives rank 1 alone."""
    paths = [write_trace(tmp_path, f"{rank}.json", [kernel(0, 10)], rank=rank) for rank in range(2)]
    for rank, path in enumerate(paths):
        with TraceAnalysis(trace_files={rank: str(path)}) as analysis:
            assert list(analysis.get_temporal_breakdown()["rank"]) == [rank]


def test_a_list_of_files_finds_its_ranks(tmp_path: Path) -> None:
    """Ranks of listed files come from the files, as in HTA's Trace."""
    paths = [write_trace(tmp_path, f"{n}.json", [kernel(0, 10)], rank=n + 2) for n in range(2)]
    with TraceAnalysis(trace_files=[str(path) for path in paths]) as analysis:
        assert list(analysis.get_temporal_breakdown()["rank"]) == [2, 3]


def test_a_removed_trace_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A deleted trace stays in the store, but is omitted from the analysis with a warning."""
    paths = [write_trace(tmp_path, f"{n}.json", [kernel(0, 10)], rank=n) for n in range(2)]
    TraceAnalysis(trace_dir=tmp_path).close()
    paths[1].unlink()
    with TraceAnalysis(trace_dir=tmp_path) as analysis:
        assert list(analysis.get_temporal_breakdown()["rank"]) == [0]
    assert "omitted: [1]" in caplog.text


def test_a_folder_without_traces_is_an_error(tmp_path: Path) -> None:
    """A folder without traces is an error, whereas HTA returns an empty analysis."""
    with pytest.raises(TraceNotFoundError):
        TraceAnalysis(trace_dir=tmp_path)


def test_a_named_store_is_opened_or_filled(tmp_path: Path) -> None:
    """Traces are ingested into a named store; without traces it is opened unchanged."""
    write_trace(tmp_path / "traces", "a.json", [kernel(0, 10)])
    place = tmp_path / "x.store"
    with TraceAnalysis(trace_dir=tmp_path / "traces", store=place) as first:
        want = first.get_temporal_breakdown()
    assert not (tmp_path / "traces" / ".hta_sql").exists()
    with TraceAnalysis(store=place) as second:
        assert second.get_temporal_breakdown().equals(want)


def test_several_captures_of_a_rank_are_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first capture is selected and the others are named, so that run= can select one."""
    folder = tmp_path / "traces"
    write_trace(folder, "early.json", [kernel(0, 10)])
    write_trace(folder, "late.json", [kernel(1000, 30)])
    with TraceAnalysis(trace_dir=folder) as first:
        assert list(first.get_temporal_breakdown()["kernel_time(us)"]) == [10.0]
    assert "The others: traces-capture2." in caplog.text
    with TraceAnalysis(store=folder / ".hta_sql", run="traces-capture2") as second:
        assert list(second.get_temporal_breakdown()["kernel_time(us)"]) == [30.0]


def test_an_unknown_run_is_refused(analysis: TraceAnalysis) -> None:
    """The error for an unknown run lists the existing runs."""
    with pytest.raises(RankError, match="available runs: traces"):
        TraceAnalysis(store=analysis.store.path, run="nothing")


def test_a_script_without_a_main_guard_runs_once(tmp_path: Path) -> None:
    """A plain script, as HTA users write it, runs once although several processes ingest."""
    for rank in range(2):
        write_trace(tmp_path / "traces", f"{rank}.json", [kernel(0, 10)], rank=rank)
    script = tmp_path / "script.py"
    lines = [
        "import hta_sql, hta_sql.ingestion.running.workers as workers",
        "workers.SMALL_BYTES = 0",
        "workers.cpu_count = lambda: 2",
        "print('started')",
        f"hta_sql.ingest({str(tmp_path / 'traces')!r}, {str(tmp_path / 'x.store')!r}).close()",
    ]
    script.write_text("\n".join(lines), encoding="utf-8")
    root = str(Path(hta_sql.__file__).parents[1])
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr
