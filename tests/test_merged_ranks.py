"""Tests that a file into which several ranks were merged is read like the traces of these ranks."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.errors import RankError, TraceFormatError
from hta_sql.synthetic import JobSpec, write_job
from hta_sql.traces.merged import merged_ranks

Trace = dict[str, Any]
Merge = Callable[[Mapping[int, Trace]], Trace]

JOB = JobSpec(ranks=3, steps=3, seed=11)


def as_sglang(traces: Mapping[int, Trace]) -> Trace:
    """Merge traces as SGLang's profile merger does: a label before each process ID."""
    merged: Trace = {"traceEvents": []}
    devices: list[Any] = []
    for rank, trace in traces.items():
        for event in trace["traceEvents"]:
            merged["traceEvents"].append({**event, "pid": f"[TP{rank:02d}] {event['pid']}"})
        devices += trace.get("deviceProperties", [])
        merged |= {key: value for key, value in trace.items() if key not in merged}
    return merged | {"deviceProperties": devices}


def as_trace_fuse(traces: Mapping[int, Trace]) -> Trace:
    """Merge traces as TraceLens' TraceFuse does: offsets, the rank in the arguments, no metadata."""
    events: list[Any] = []
    pids: dict[int, int] = {}
    for rank, trace in traces.items():
        for event in trace["traceEvents"]:
            args = {**event.get("args", {}), "rank": rank, "pid_raw": event["pid"]}
            one = {**event, "args": args}
            if isinstance(one["pid"], int):
                one["pid"] += rank * 10**8
                pids.setdefault(one["pid"], rank)
            if "id" in one:
                args["id_raw"], one["id"] = one["id"], one["id"] + rank * 10**7
            if "correlation" in args:
                args["correlation_raw"] = args["correlation"]
                args["correlation"] += rank * 10**7
            events.append(one)
    events += [
        {
            "name": "process_name",
            "ph": "M",
            "pid": pid,
            "tid": 0,
            "args": {"name": f"RANK {rank} - CPU"},
        }
        for pid, rank in pids.items()
    ]
    return {"traceEvents": events}


def written(trace: Trace, path: Path, indent: int | None = None) -> Path:
    """Write a trace as a gzip file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(trace, file, indent=indent)
    return path


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Trace]:
    """Return the traces of a job by rank."""
    folder = tmp_path_factory.mktemp("job")
    write_job(folder, JOB)
    found = {}
    for path in sorted(folder.iterdir()):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            trace = json.load(file)
        found[trace["distributedInfo"]["rank"]] = trace
    assert len(found) == JOB.ranks
    return found


ANSWERS = (
    "FROM step_accounting_v1()",
    "FROM stragglers_v1()",
    "FROM collective_waits_v1()",
    "FROM kernel_table_v1()",
    "FROM idle_causes_v1()",
    "FROM operator_table_v1()",
    "SELECT rule, subject, message FROM advice_v1()",
)


def answers(store: hta_sql.TraceStore) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of some analyses, without ids and names of runs."""
    found = {}
    for query in ANSWERS:
        table = store.sql(query).df()
        hidden = [c for c in table if c in ("run", "event_id") or str(c).endswith("_id")]
        rows = table.drop(columns=hidden).astype(object)
        found[query] = [*rows.where(rows.notna(), None).itertuples(index=False, name=None)]
        assert found[query], query
    return found


def test_sglang_ranks_equal_their_own_files(tmp_path: Path, traces: dict[int, Trace]) -> None:
    """Every event of every rank is the same, with its time, thread and arguments."""
    paths = {rank: written(trace, tmp_path / f"{rank}.json.gz") for rank, trace in traces.items()}
    merged = written(as_sglang(traces), tmp_path / "merged" / "merged-1.trace.json.gz")
    apart = hta_sql.ingest(paths, tmp_path / "apart", run="job")
    split = hta_sql.ingest(merged, tmp_path / "split", run="job")
    assert split.ranks() == apart.ranks() == [0, 1, 2]
    assert answers(split) == answers(apart)
    for table in ("gpu_ops", "cpu_ops", "runtime_calls", "process_groups", "devices"):
        rows = [store.sql(f"FROM {table} ORDER BY ALL").df() for store in (apart, split)]
        assert len(rows[0]), table
        assert rows[0].equals(rows[1]), table


@pytest.mark.parametrize("indent", [None, 4])
def test_trace_fuse_ranks_equal_their_own_files(
    tmp_path: Path, traces: dict[int, Trace], indent: int | None
) -> None:
    """TraceFuse drops the metadata; apart from that, the answers are those of separate files."""
    bare = {rank: {"traceEvents": trace["traceEvents"]} for rank, trace in traces.items()}
    paths = {rank: written(trace, tmp_path / f"{rank}.json.gz") for rank, trace in bare.items()}
    merged = written(as_trace_fuse(traces), tmp_path / "fused" / "merged.json.gz", indent)
    apart = hta_sql.ingest(paths, tmp_path / "apart", run="job")
    split = hta_sql.ingest(merged, tmp_path / "split", run="job")
    assert split.ranks() == [0, 1, 2]
    assert answers(split) == answers(apart)


def test_events_of_ranks_may_alternate(tmp_path: Path, traces: dict[int, Trace]) -> None:
    """A merged file that was sorted by time afterwards is split, too."""
    merged = as_sglang(traces)
    merged["traceEvents"].sort(key=lambda event: float(event.get("ts", 0)))
    split = hta_sql.ingest(written(merged, tmp_path / "merged.json.gz"), tmp_path / "store")
    counts = split.sql("SELECT rank, count(*) FROM gpu_ops GROUP BY rank ORDER BY rank").rows()
    kernels = {
        rank: sum(str(e.get("cat")).startswith(("kernel", "gpu_mem")) for e in t["traceEvents"])
        for rank, t in traces.items()
    }
    assert dict(counts) == pytest.approx(kernels, rel=0.01)


def test_a_merged_file_next_to_the_traces_of_its_ranks_is_skipped(
    tmp_path: Path, traces: dict[int, Trace], caplog: pytest.LogCaptureFixture
) -> None:
    """SGLang writes the merged file into the folder of the ranks: no event is counted twice."""
    for rank, trace in traces.items():
        written(trace, tmp_path / "job" / f"1-TP-{rank}.trace.json.gz")
    written(as_sglang(traces), tmp_path / "job" / "merged-1.trace.json.gz")
    store = hta_sql.ingest(tmp_path / "job", tmp_path / "store")
    assert "merged from ranks 0-2" in caplog.text
    assert store.runs() == ["job"]
    assert not any(
        "rank://" in source for (source,) in store.sql("SELECT source FROM ranks").rows()
    )


def test_some_ranks_of_a_merged_file(tmp_path: Path, traces: dict[int, Trace]) -> None:
    """Ranks are selected as usual; a second ingest reads nothing again."""
    merged = written(as_sglang(traces), tmp_path / "merged.json.gz")
    store = hta_sql.ingest(merged, tmp_path / "store", ranks=[1])
    assert store.ranks() == [1]
    read: list[object] = []
    hta_sql.ingest(merged, tmp_path / "store", progress=lambda *of: read.append(of))
    assert len(read) == 2
    hta_sql.ingest(merged, tmp_path / "store", progress=lambda *of: read.append(of))
    assert len(read) == 2


def test_a_merged_file_that_is_cut_off(tmp_path: Path, traces: dict[int, Trace]) -> None:
    """Each rank that is left states that the file is cut off."""
    text = json.dumps(as_sglang(traces))
    (tmp_path / "merged.json").write_text(text[: len(text) // 2], encoding="utf-8")
    store = hta_sql.ingest(tmp_path / "merged.json", tmp_path / "store")
    reasons = store.sql(
        "SELECT DISTINCT rank, reason FROM quarantine WHERE byte_count = 0 OR is_lost"
    ).rows()
    assert store.ranks() == [0, 1]
    assert {rank for rank, reason in reasons if "cut" in reason} == {0, 1}


def test_a_merged_file_is_not_the_trace_of_one_rank(
    tmp_path: Path, traces: dict[int, Trace]
) -> None:
    """A rank given for a merged file is refused with what to do."""
    merged = written(as_sglang(traces), tmp_path / "merged.json.gz")
    with pytest.raises(RankError, match="merged from the traces of ranks 0-2"):
        hta_sql.ingest({0: merged}, tmp_path / "store")


@pytest.mark.parametrize(
    ("labels", "ranks"),
    [
        (["TP00", "TP01", "TP10"], [0, 1, 10]),
        (["TP00-DP00", "TP01-DP00", "TP02-DP01", "TP03-DP01"], [0, 1, 2, 3]),
        (["TP00-PP00", "TP00-PP01", "TP01-PP00", "TP01-PP01"], [0, 2, 1, 3]),
        (["TP00-DP00", "TP00-DP01", "TP01-DP00", "TP01-DP01"], [0, 2, 1, 3]),
        (["0", "3", "12"], [0, 3, 12]),
    ],
)
def test_ranks_of_labels(labels: list[str], ranks: list[int]) -> None:
    """Positions of the tensor group are ranks if they differ."""
    found = {of.label: of.rank for of in merged_ranks("file", [label.encode() for label in labels])}
    assert [found[label] for label in labels] == ranks


def test_labels_that_are_no_ranks() -> None:
    """A file whose labels do not tell ranks apart is refused by name."""
    with pytest.raises(TraceFormatError, match="do not determine ranks: EP00, EP01"):
        merged_ranks("file", [b"EP00", b"EP01"])
