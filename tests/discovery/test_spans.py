"""Recordings that one process made one after the other become separate runs of the same rank.

``schedule(repeat=2)`` writes such recordings.
"""

from __future__ import annotations

import gzip
import json
import logging
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from tests.shared_stores import ingest_only

PAGE = Path(__file__).parents[2] / "docs" / "distributed.md"
RECORDED = sorted((Path(__file__).parents[1] / "traces" / "recorded" / "two_spans").glob("*.gz"))


def content(path: Path) -> dict[str, Any]:
    """Return the content of a recorded trace."""
    trace: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return trace


def of_rank(rank: int, path: Path, later_us: int = 0) -> dict[str, Any]:
    """Return a recorded trace with a different rank, shifted by ``later_us``."""
    trace = content(path)
    events = [event | {"ts": event["ts"] + later_us} for event in trace["traceEvents"]]
    stated = {"rank": rank, "world_size": 2}
    own = {"distributedInfo": stated, "trace_id": f"{trace['trace_id']}-{rank}"}
    return trace | own | {"traceEvents": events}


def write(folder: Path, traces: dict[str, dict[str, Any]]) -> Path:
    """Write traces into a new folder."""
    folder.mkdir()
    for name, trace in traces.items():
        (folder / name).write_text(json.dumps(trace), encoding="utf-8")
    return folder


def placed(store: hta_sql.TraceStore) -> list[tuple[str, int, str]]:
    """Return the run, rank and file name of each trace."""
    rows = store.sql("SELECT run, rank, source FROM ranks ORDER BY ALL").rows()
    return [(run, rank, Path(source).name) for run, rank, source in rows]


def test_names_of_torchs_handler(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each recording becomes a run with its original step numbers and all of its events.

    Operators are linked only within a recording.
    """
    folder = tmp_path / "job"
    folder.mkdir()
    for path in RECORDED:
        shutil.copy(path, folder)
    with hta_sql.ingest(folder, tmp_path / "job.store") as store:
        steps = "SELECT run, rank, list(step ORDER BY step) FROM steps GROUP BY ALL ORDER BY ALL"
        assert store.sql(steps).rows() == [("job", 0, [2, 3]), ("job-capture2", 0, [6, 7])]
        counts = "SELECT run, count(*) FROM events GROUP BY ALL ORDER BY ALL"
        in_files = [len(content(path)["traceEvents"]) for path in RECORDED]
        assert [count for _, count in store.sql(counts).rows()] == in_files
        # Both recordings number their flow events from 1.
        backward = "SELECT run, count(fwd_op_id) FROM cpu_ops WHERE fwd_op_id IS NOT NULL GROUP BY ALL ORDER BY ALL"
        assert store.sql(backward).rows() == [("job", 6), ("job-capture2", 6)]
        # The time between the recordings is unknown, so no step includes it.
        accounted = store.sql(
            "SELECT a.step_ns = s.dur FROM step_accounting(include_last_profiler_step := true) AS a "
            "JOIN steps AS s USING (run, rank, step)"
        )
        assert accounted.rows() == [(True,)] * 4
    assert "schedule(repeat=2)" in caplog.text
    assert "using rank" not in caplog.text


def test_one_run_where_that_is_asked_for(tmp_path: Path) -> None:
    """With ``join_spans``, the recordings become one run with the same steps and sums."""
    folder = tmp_path / "job"
    folder.mkdir()
    for path in RECORDED:
        shutil.copy(path, folder)
    sums = "SELECT name, sum(call_count), sum(host_self_ns) FROM operator_table() GROUP BY ALL ORDER BY ALL"
    with hta_sql.ingest(folder, tmp_path / "runs.store", jobs=1) as runs:
        expected = runs.sql(sums).rows()
    with hta_sql.ingest(folder, tmp_path / "run.store", jobs=1, join_spans=True) as run:
        steps = "SELECT run, rank, list(step ORDER BY step) FROM steps GROUP BY ALL ORDER BY ALL"
        assert run.sql(steps).rows() == [("job", 0, [2, 3, 6, 7])]
        assert run.sql(sums).rows() == expected


def test_the_page_adds_them_up(tmp_path: Path) -> None:
    """The query in docs/distributed.md sums the recordings."""
    (statement,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    folder = tmp_path / "NAME"
    folder.mkdir()
    for path in RECORDED:
        shutil.copy(path, folder)
    with hta_sql.ingest(folder, tmp_path / "job.store") as store:
        rows = {row["name"]: row for row in store.sql(statement).records()}
    # One step of each recording, because the last step is excluded.
    assert rows["aten::linear"]["call_count"] == 2


def test_names_of_ones_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Files that the user named by step belong to one rank if their process is the same."""
    traces = {
        f"trace_{number}.json": content(path) for number, path in zip((4, 8), RECORDED, strict=True)
    }
    folder = write(tmp_path / "job", traces)
    expected = [("job", 0, "trace_4.json"), ("job-capture2", 0, "trace_8.json")]
    with hta_sql.ingest(folder, tmp_path / "job.store") as store:
        assert placed(store) == expected
    assert "using rank" not in caplog.text
    with hta_sql.ingest(folder, tmp_path / "job.store") as store:
        assert placed(store) == expected
        assert store.ingested
        assert store.ingested.results == []


@pytest.mark.parametrize("other", ["at the same time", "on another host"])
def test_two_processes_of_one_number(tmp_path: Path, other: str) -> None:
    """Traces with the same PID are two ranks if they overlap in time or come from two hosts."""
    first, second = map(content, RECORDED)
    if other == "at the same time":
        second = of_rank(1, RECORDED[0], later_us=100)
        del second["distributedInfo"]
    else:
        second["host_name"] = "node-1"
    folder = write(tmp_path / "job", {"a.json": first, "b.json": second})
    with hta_sql.ingest(folder, tmp_path / "job.store") as store:
        assert placed(store) == [("job", 0, "a.json"), ("job", 1, "b.json")]


def test_a_rank_without_the_first_span(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """If a rank has only one of two recordings, it is assigned to the capture at the same time."""
    one, other = RECORDED
    traces = {
        "a.json": of_rank(0, one),
        "b.json": of_rank(0, other),
        "c.json": of_rank(1, other, later_us=30),
    }
    folder = write(tmp_path / "job", traces)
    with caplog.at_level(logging.WARNING), hta_sql.ingest(folder, tmp_path / "job.store") as store:
        assert placed(store) == [
            ("job", 0, "a.json"),
            ("job-capture2", 0, "b.json"),
            ("job-capture2", 1, "c.json"),
        ]
    assert "Rank 0 has 2 files. Each becomes a separate run" in caplog.text


def test_clocks_that_cannot_be_compared(tmp_path: Path) -> None:
    """Without a base time, a capture consists of the n-th file of each rank."""
    one, other = RECORDED
    traces = {
        "a.json": of_rank(0, one),
        "b.json": of_rank(0, other),
        "c.json": of_rank(1, other),
    }
    for trace in traces.values():
        del trace["baseTimeNanoseconds"]
    folder = write(tmp_path / "job", traces)
    with hta_sql.ingest(folder, tmp_path / "job.store") as store:
        assert placed(store) == [
            ("job", 0, "a.json"),
            ("job", 1, "c.json"),
            ("job-capture2", 0, "b.json"),
        ]


def test_one_warning_for_all_ranks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """If each rank has two files, a single warning covers all ranks."""
    traces = {
        f"{rank}-{number}.json": of_rank(rank, path, later_us=rank)
        for rank in range(2)
        for number, path in enumerate(RECORDED)
    }
    folder = write(tmp_path / "job", traces)
    ingest_only(folder, tmp_path / "job.store")
    (said,) = [record.message for record in caplog.records]
    assert said.startswith("Rank 0 has 2 files (and so does rank 1). Each becomes a separate run")
