"""Small traces have the same rows whether they are ingested together or separately."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import duckdb
import pytest

from hta_sql.errors import ParameterError, TraceFormatError
from hta_sql.ingestion import rank as rank_module
from hta_sql.ingestion.rank import ingest_rank, ingest_ranks
from hta_sql.ingestion.rank_job import RankJob, RankResult
from hta_sql.ingestion.running import workers
from hta_sql.ingestion.running.batches import MOST_BYTES, in_batches
from hta_sql.ingestion.running.workers import plan_workers
from hta_sql.machine import engine_share

TRACES = Path(__file__).parent.parent / "traces"
PLAIN = (
    "forward_backward",
    "call_stacks",
    "graph_launch",
    "two_ranks_0",
    "two_ranks_1",
    "gpu_views",
)
ODD = ("broken_event", "ascend_trace_view", "every_table")
"""Traces with a broken event, Ascend events, and events without a valid time."""

Tables = dict[str, list[tuple[object, ...]]]


def jobs_of(names: tuple[str, ...], folder: Path) -> list[RankJob]:
    """Return an ingest job for each trace."""
    return [
        RankJob(str(TRACES / f"{name}.json"), "run", rank, "given", str(folder), is_small=True)
        for rank, name in enumerate(names)
    ]


def tables_of(result: object) -> Tables:
    """Return the rows of each table of an ingested rank, in file order."""
    assert isinstance(result, RankResult)
    tables: Tables = {}
    with duckdb.connect() as con:
        for file in result.files:
            rows = con.read_parquet(f"{result.job.tables}/{file.path}", hive_partitioning=False)
            tables[file.table] = rows.filter(f"rank = {file.rank}").fetchall()
            counts = len(tables[file.table]), len(rows)
            assert counts == (file.rows, file.file_rows)
    return tables


def facts(result: object) -> RankResult:
    """Return the result of a rank without its files and duration."""
    assert isinstance(result, RankResult)
    return replace(result, files=[], seconds=0)


def test_each_has_the_rows_that_it_has_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each trace has the same rows as if ingested separately, even if one is ingested twice."""
    jobs = jobs_of((*PLAIN, PLAIN[0]), tmp_path)
    alone = list(map(ingest_rank, jobs))
    # No trace may be ingested separately.
    monkeypatch.setattr(rank_module, "ingest_rank", None)
    for one, other in zip(ingest_ranks(jobs), alone, strict=True):
        assert tables_of(one) == tables_of(other)
        assert facts(one) == facts(other)


def test_what_is_not_plain_harms_no_other(tmp_path: Path) -> None:
    """Irregular traces and files that are not traces do not affect other traces in a batch."""
    no_trace = tmp_path / "no_trace.json"
    no_trace.write_text("nonsense", encoding="utf-8")
    jobs = jobs_of((ODD[0], PLAIN[0], ODD[1], PLAIN[1], ODD[2]), tmp_path)
    bad = replace(jobs[0], path=str(no_trace), rank=9)
    *results, error = ingest_ranks([*jobs, bad])
    assert isinstance(error, TraceFormatError)
    assert [tables_of(one) for one in results] == [tables_of(ingest_rank(job)) for job in jobs]
    assert [facts(one).quarantined for one in results] == [1, 0, 0, 0, 1]


def test_a_trace_is_left_out_after_some_of_its_events(tmp_path: Path) -> None:
    """Events of a trace that turns out to be flawed or cut are removed from the batch again."""
    whole = (TRACES / f"{PLAIN[0]}.json").read_text(encoding="utf-8")
    cut, flawed = tmp_path / "cut.json", tmp_path / "flawed.json"
    cut.write_text(whole[: len(whole) * 2 // 3], encoding="utf-8")
    flawed.write_text(whole[: whole.rindex("{")] + '{"broken"}]}', encoding="utf-8")
    jobs = [
        replace(job, chunk_bytes=300) for job in jobs_of((PLAIN[1], PLAIN[0], PLAIN[0]), tmp_path)
    ]
    jobs += [replace(jobs[0], path=str(p), rank=8 + n) for n, p in enumerate((cut, flawed))]
    jobs += [replace(jobs[2], rank=20)]
    alone = list(map(ingest_rank, jobs))
    for one, other in zip(ingest_ranks(jobs), alone, strict=True):
        assert tables_of(one) == tables_of(other)
        assert facts(one) == facts(other)


def test_batches() -> None:
    """Small traces are read in as few batches as possible, but each worker gets one."""
    job = RankJob("trace.json", "run", 0, "given", "", size=1000, is_small=True)
    small = [replace(job, rank=rank) for rank in range(4)]
    spans = [replace(job, rank=4), replace(job, rank=4, span=1)]
    large = replace(job, rank=5, is_small=False)
    long = replace(job, path="long.json", size=MOST_BYTES + 1, rank=6)
    batches = in_batches([*small, *spans, large, long], workers=2, threads=1)
    assert sorted(len(batch) for batch in batches) == [1, 1, 1, 1, 4]


def test_batches_of_many_ranks() -> None:
    """Batches have at most 100 ranks, because an interruption loses the current batch."""
    job = RankJob("trace.json", "run", 0, "given", "", size=1000, is_small=True)
    batches = in_batches([replace(job, rank=rank) for rank in range(300)], workers=1, threads=1)
    assert [len(batch) for batch in batches] == [100, 100, 100]


def test_batches_of_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of a batch is limited, and a single batch gets all threads."""
    job = RankJob("trace.json", "run", 0, "given", "", size=1000, is_small=True)
    jobs = [replace(job, rank=rank) for rank in range(6)]
    (only,) = in_batches(jobs, workers=2, threads=1)
    assert {one.threads for one in only} == {2}
    monkeypatch.setattr("hta_sql.ingestion.running.batches.BATCH_BYTES", 2000)
    assert [len(batch) for batch in in_batches(jobs, workers=2, threads=1)] == [2, 2, 2]


@pytest.mark.parametrize(
    ("cores", "megabytes", "jobs", "who"),
    [
        (2, [1, 1], None, "threads"),
        (2, [200, 200], None, "threads"),
        (16, [200] * 16, None, "processes"),
        (2, [400, 1], None, "processes"),
        (2, [1, 1], 2, "processes"),
    ],
)
def test_who_reads(cores: int, megabytes: list[int], jobs: int | None, who: str) -> None:
    """Separate processes are used for many or large traces, and on request."""
    sizes = {f"rank{rank}.json": size << 20 for rank, size in enumerate(megabytes)}
    with patch.object(workers, "cpu_count", return_value=cores):
        plan = plan_workers(sizes, jobs, None)
    assert plan.in_processes == (who == "processes")


def test_the_limit_is_that_of_the_process() -> None:
    """DuckDB gets the memory limit minus Python's share, but at least half of it."""
    shares = {"1GiB": "811008KiB", "600MiB": "376832KiB", "300MiB": "153600KiB", "1GB": "738994KiB"}
    for limit, share in shares.items():
        assert plan_workers({"rank0.json": 1}, None, engine_share(limit)).memory_limit == share
    with pytest.raises(ParameterError, match="'lots' is not a size"):
        engine_share("lots")
