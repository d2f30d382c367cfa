"""Traces of different jobs in one folder are refused, unless they are declared as one job."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql.errors import RankError
from hta_sql.ingestion.discover import discover

if TYPE_CHECKING:
    from collections.abc import Callable

    from hta_sql.store.query.trace_store import TraceStore

    Ingest = Callable[..., TraceStore]


def trace(rank: int | None, ts: float = 10, **stated: Any) -> dict[str, Any]:
    """Return a trace with one kernel; most keywords become keys of ``distributedInfo``."""
    top: dict[str, Any] = {
        key: stated.pop(key) for key in ("baseTimeNanoseconds", "trace_id") if key in stated
    }
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": ts, "dur": 5}
    if rank is not None:
        top["distributedInfo"] = {"rank": rank, **stated}
    base = {key: top.pop(key) for key in list(top) if key == "baseTimeNanoseconds"}
    return {**top, "traceEvents": [kernel], **base}


@pytest.fixture
def ingest(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Ingest:
    """Return a function that writes traces into a folder and ingests it."""

    def do(traces: dict[str, dict[str, Any]], *, one_job: bool = False) -> TraceStore:
        folder = tmp_path / "job"
        folder.mkdir()
        for name, content in traces.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(json.dumps(content))
        with caplog.at_level(logging.WARNING):
            return hta_sql.ingest(folder, tmp_path / "job.store", one_job=one_job)

    return do


def findings(store: TraceStore) -> set[str]:
    """Return the names of the findings in a store."""
    return {row["finding"] for row in store.run("findings").arrow().to_pylist()}


def said(caplog: pytest.LogCaptureFixture, text: str) -> str:
    """Return the only log message that contains a string."""
    (message,) = [record.message for record in caplog.records if text in record.message]
    return message


def test_world_sizes_and_backends(ingest: Ingest, caplog: pytest.LogCaptureFixture) -> None:
    """The warnings list each world size and backend with the files that state it."""
    traces = {
        "a.json": trace(0, world_size=4, backend="nccl"),
        "b.json": trace(1, world_size=2, backend="gloo"),
    }
    with ingest(traces, one_job=True) as store:
        assert {"world_sizes_differ", "backends_differ", "ranks_missing"} <= findings(store)
    assert "4: a.json; 2: b.json" in said(caplog, "different world sizes")
    assert "nccl: a.json; gloo: b.json" in said(caplog, "different backends")
    assert "the traces of these ranks are missing: 2-3" in said(caplog, "The job has 4 ranks")


TIMED = "host_{}.170000000000000000{}.pt.trace.json"

SEVERAL = {
    "world sizes": (
        {"A/0.json": trace(0, world_size=4), "B/1.json": trace(1, world_size=2)},
        r"2 jobs, .* world sizes: A \(world size 4, 1 file\); B \(world size 2, 1 file\)\.",
    ),
    "backends": (
        {
            f"{job}/{rank}.json": trace(rank, world_size=2, backend=backend)
            for job, backend in (("A", "nccl"), ("B", "gloo"))
            for rank in range(2)
        },
        r"different backends: A \(world size 2, nccl, 2 files\); B \(world size 2, gloo, 2 files\)",
    ),
    "processes of one rank": (
        {
            f"{job}/{TIMED.format(10 * number + rank, rank)}": trace(rank, world_size=2)
            for number, job in enumerate("AB")
            for rank in range(2)
        },
        r"different processes recorded the same rank: A \(world size 2, 2 files\); B \(",
    ),
    "a folder that states nothing": (
        {
            "A/0.json": trace(0, world_size=4),
            "A/1.json": trace(1, world_size=4),
            "B/trace.json": trace(None),
            "C/trace.json": trace(None),
        },
        r"3 jobs, .* neither rank nor world size: A \(world size 4, 2 files\); B \(1 file\); C \(1 file\)",
    ),
    "times": (
        {
            f"{job}/trace.json": trace(None, baseTimeNanoseconds=base)
            for job, base in (("A", 1_700_000_000_000_000_000), ("B", 1_700_000_400_000_000_000))
        },
        r"recorded at different times: A \(1 file\); B \(1 file\)",
    ),
}


def with_pid(
    pid: int, *traced: Any, groups: list[str] | None = None, **stated: Any
) -> dict[str, Any]:
    """Return a trace with a process id and, optionally, process groups."""
    if groups:
        stated["pg_config"] = [{"pg_name": name, "ranks": [0, 1]} for name in groups]
    content = trace(*traced, **stated)
    event = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::mm",
        "pid": pid,
        "tid": 1,
        "ts": 1,
        "dur": 2,
    }
    content["traceEvents"].append(event)
    return content


SEVERAL |= {
    "processes in one folder": (
        {
            f"{job}_rank{rank}.json": with_pid(100 * number + rank, rank, world_size=2)
            for number, job in enumerate("ab")
            for rank in range(2)
        },
        r"different processes recorded the same rank: a_rank0.json, a_rank1.json \(world size 2, 2 files\); b_rank0",
    ),
    "group names": (
        {
            f"{job}_rank{rank}.json": with_pid(7, rank, world_size=2, groups=["0", f"{job}_tp"])
            for job in "ab"
            for rank in range(2)
        },
        r"2 jobs, because traces of the same rank have different process groups: a_rank0.json, a_rank1",
    ),
}


@pytest.mark.parametrize("kind", SEVERAL)
def test_several_jobs_are_refused_with_their_list(ingest: Ingest, kind: str) -> None:
    """The error lists the jobs by folder or file, and suggests options."""
    traces, text = SEVERAL[kind]
    with pytest.raises(RankError, match=text) as refused:
        ingest(traces)
    assert "--one-job" in str(refused.value)
    assert "--role ROLE=PATH" in str(refused.value)


ONE = {
    "nothing stated": {f"n{rank}/trace.json": trace(None) for rank in range(3)},
    "captures of one process": {
        f"step{ts}/{TIMED.format(7, number)}": trace(0, ts=ts, world_size=1)
        for number, ts in enumerate((10, 5000))
    },
    "roles": {
        "trainer.json": trace(0, world_size=1, role="trainer", backend="nccl"),
        "generator.json": trace(1, world_size=2, role="generator", backend="gloo"),
    },
    "captures between which groups were made": {
        f"{number}/rank{rank}.json": with_pid(
            7 + rank, rank, 10 + number, world_size=2, groups=groups
        )
        for number, groups in enumerate((["0"], ["0", "1"]))
        for rank in range(2)
    },
    "processes of a job of one rank": {
        f"{number}.json": with_pid(number, 0, 10 + number, world_size=1) for number in (5, 6)
    },
    "hosts in folders": {f"n{rank}/a.json": trace(rank, world_size=2) for rank in range(2)},
}


@pytest.mark.parametrize("kind", ONE)
def test_one_job_is_not_refused(tmp_path: Path, kind: str) -> None:
    """Traces of one job may have no metadata, two captures, or separate folders."""
    for name, content in ONE[kind].items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    assert len(discover(str(tmp_path))) == len(ONE[kind])


def test_a_rank_beyond_the_world_is_refused_with_its_file(ingest: Ingest) -> None:
    """A rank that exceeds its world size is refused with an error that names the file."""
    traces = {"a.json": trace(0, world_size=2), "b.json": trace(7, world_size=2)}
    with pytest.raises(RankError, match=r"world size of 2, so it has no rank 7: b\.json"):
        ingest(traces)


@pytest.mark.parametrize("size", [-1, 0, (1 << 24) + 1, -(1 << 63), 1 << 62, "word"])
def test_a_world_size_of_no_job_counts_as_not_stated(ingest: Ingest, size: object) -> None:
    """An implausible world size is ignored, so no rank is refused or reported as missing."""
    traces = {"a.json": trace(1, world_size=size), "b.json": trace(3, world_size=size)}
    with ingest(traces) as store:
        assert store.ranks() == [1, 3]
        assert store.sql("SELECT DISTINCT world_size FROM ranks").rows() == [(None,)]


def test_a_large_world_size_is_read(ingest: Ingest, caplog: pytest.LogCaptureFixture) -> None:
    """With a large world size, missing ranks are reported as a range."""
    size = 1 << 24
    traces = {"a.json": trace(1, world_size=size), "b.json": trace(3, world_size=size)}
    with ingest(traces) as store:
        assert store.ranks() == [1, 3]
    assert f"the traces of these ranks are missing: 0, 2, 4-{size - 1}" in said(
        caplog, f"The job has {size} ranks"
    )


def test_a_base_time_on_some(ingest: Ingest, caplog: pytest.LogCaptureFixture) -> None:
    """If only some ranks have a base time, a finding says that their clocks are unrelated."""
    base = {"baseTimeNanoseconds": 1700000000000000000}
    with ingest({"a.json": trace(0, **base), "b.json": trace(1)}) as store:
        assert "clocks_mixed" in findings(store)
        offsets = store.sql("SELECT rank, offset_ns FROM ranks ORDER BY rank").rows()
    assert offsets == [(0, 0), (1, 0)], "each clock has its own zero"
    assert said(caplog, "baseTimeNanoseconds").endswith("Without baseTimeNanoseconds: b.json.")


def test_a_copy(ingest: Ingest, caplog: pytest.LogCaptureFixture) -> None:
    """A finding reports two ranks whose traces have the same capture id."""
    traces = {"rank0.json": trace(None, trace_id="AA"), "rank1.json": trace(None, trace_id="AA")}
    with ingest(traces) as store:
        assert "same_capture" in findings(store)
    assert "rank0.json, rank1.json" in said(caplog, "trace_id")


def test_captures_are_runs_side_by_side(ingest: Ingest, caplog: pytest.LogCaptureFixture) -> None:
    """Two files per rank become two runs in time order, regardless of their names."""
    traces = {
        "a.json": trace(0, ts=5000, world_size=2),
        "b.json": trace(0, ts=10, world_size=2),
        "c.json": trace(1, ts=12, world_size=2),
        "d.json": trace(1, ts=5003, world_size=2),
    }
    with ingest(traces) as store:
        rows = store.sql("SELECT run, rank, source FROM ranks ORDER BY ALL").rows()
        assert [(run, rank, Path(source).name) for run, rank, source in rows] == [
            ("job", 0, "b.json"),
            ("job", 1, "c.json"),
            ("job-capture2", 0, "a.json"),
            ("job-capture2", 1, "d.json"),
        ]
        assert "further_capture" in findings(store)
        assert {"world_sizes_differ", "ranks_missing"}.isdisjoint(findings(store))
    assert "b.json, a.json" in said(caplog, "Rank 0 has 2 files")


def test_one_job_says_nothing(ingest: Ingest, caplog: pytest.LogCaptureFixture) -> None:
    """A folder with all traces of one job causes no warning."""
    healthy = {
        f"{rank}.json": trace(rank, world_size=3, backend="nccl", trace_id=f"T{rank}")
        for rank in range(3)
    }
    ingest(healthy).close()
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_jobs_in_folders_of_their_own(ingest: Ingest, caplog: pytest.LogCaptureFixture) -> None:
    """If a rank has files in different folders, warnings list them and suggest a command."""
    folders = {f"{job}/rank0.json": trace(0, ts=ts) for job, ts in (("A", 10), ("B", 5000))}
    ingest(folders).close()
    assert said(caplog, "Rank 0 has 2 files").endswith(": A/rank0.json, B/rank0.json.")
    assert "hta-sql ingest FOLDER --run NAME -o STORE" in said(caplog, "several folders")


@pytest.mark.parametrize(
    "traces",
    [
        {"a.json": trace(0, ts=10), "b.json": trace(0, ts=5000)},
        {"n0/a.json": trace(0, world_size=2), "n1/b.json": trace(1, world_size=2)},
    ],
)
def test_one_job_says_nothing_of_folders(
    ingest: Ingest, caplog: pytest.LogCaptureFixture, traces: dict[str, dict[str, Any]]
) -> None:
    """Two captures in one folder, or one folder per rank, cause no warning about folders."""
    ingest(traces).close()
    assert "several folders" not in caplog.text


def test_dumps_of_jobs_of_different_sizes_are_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Dumps of jobs with different rank counts become separate runs."""
    for folder, size in (("a", 1), ("b", 3)):
        (tmp_path / folder).mkdir()
        for rank in range(size):
            dump = {"version": "2.10", "pg_config": {}, "entries": []}
            (tmp_path / folder / f"nccl_trace_rank_{rank}.json").write_text(json.dumps(dump))
    with caplog.at_level(logging.WARNING):
        found = discover(str(tmp_path))
    runs = [(file.capture, file.rank, Path(file.path).parent.name) for file in found]
    assert runs == [(0, 0, "a"), (1, 0, "b"), (1, 1, "b"), (1, 2, "b")]
    assert "the dumps of each folder become a separate run" in caplog.text


def recorded(start_s: float, pid: int) -> dict[str, Any]:
    """Return a trace that states neither rank nor process, recorded for half a second."""
    content = with_pid(pid, None, ts=1e6 * start_s, baseTimeNanoseconds=1_700_000_000_000_000_000)
    end = {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": ""}
    content["traceEvents"].append({**end, "ts": 1e6 * start_s + 5e5})
    return content


def test_before_and_after_are_no_ranks(ingest: Ingest, tmp_path: Path) -> None:
    """Two recordings in turn are two runs: the message has a command for each."""
    job = tmp_path / "job"
    commands = rf"ingest {job}/before\.json --run before -o STORE; .*{job}/after\.json --run after"
    with pytest.raises(RankError, match=rf"one after the other.*{commands}"):
        ingest({"before.json": recorded(0, 7), "after.json": recorded(60, 8)})


def test_recordings_at_the_same_time_are_ranks(ingest: Ingest) -> None:
    """Ranks that state nothing are recorded at the same time."""
    with ingest({"a.json": recorded(0, 7), "b.json": recorded(0.1, 8)}) as store:
        assert store.sql("SELECT rank FROM ranks ORDER BY rank").rows() == [(0,), (1,)]


def test_commands_name_folders_where_these_hold_one_job(ingest: Ingest, tmp_path: Path) -> None:
    """Each job of its own folder is one short command."""
    with pytest.raises(RankError, match=rf"hta-sql ingest {tmp_path}/job/A --run A -o STORE; "):
        ingest(SEVERAL["backends"][0])
