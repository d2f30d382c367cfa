"""MindSpore's cluster data, which has more than one file per rank, is ingested."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest

import hta_sql
from hta_sql.errors import TraceError
from tests.safety.conftest import trace_of
from tests.shared_stores import ingest_only

TRACES = Path(__file__).parents[1] / "traces"
FILES = (
    "step_trace_raw_0_detail_time.csv",
    "step_trace_raw_1_detail_time.csv",
    "ascend_cluster_analyse_pipeline-parallel_2_2_0.csv",
    "hccl_raw_0.csv",
    "flops_summary_0.json",
)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Write the files of two ranks; the first rank has a file of every kind."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    for name in FILES:
        shutil.copy(TRACES / name, folder / name)
    (folder / "memory_usage_summary_0.json").write_text('{"capacity": 32, "peak_mem": 3.5}')
    return folder


def test_a_rank_is_several_files(job: Path, tmp_path: Path) -> None:
    """All files of a rank are ingested, with its steps, operators, links and summary figures."""
    with hta_sql.ingest(job, tmp_path / "job.store") as store:
        assert store.ranks() == [0, 1]
        assert store.sql("SELECT world_size, event_count FROM ranks WHERE rank = 0").rows() == [
            (2, 0)
        ]
        (rank,) = store.sql("SELECT * EXCLUDE run FROM cluster_ranks").rows()
        assert rank == (0, "pipeline-parallel", 2, 2, 107.5, 5.25, 0.23, 3.5, 32.0)
        links = store.sql(
            "SELECT step, operator, src_rank, dst_rank, link_type, dur, bytes FROM cluster_links"
            " WHERE step = 2 ORDER BY ALL"
        )
        assert links.rows() == [
            (2, "stream_3_0_AllReduce-op7", 1, 0, "SDMA", 1400, 4096),
            (2, None, 1, 0, "SDMA", 1400, 4096),
        ]
        operators = store.sql(
            "SELECT step, name, stream, kind, start_clock_ns, dur, communication_ns, wait_ns"
            " FROM cluster_communication WHERE step IS NOT NULL ORDER BY step, name"
        )
        assert operators.rows() == [
            (1, "stream_3_0_AllReduce-op7", 3, "AllReduce", 15000, 2000, 1200, 600),
            (1, "stream_4_0_Receive-op9", 4, "Receive", 10000, 500, 0, 200),
            (2, "stream_3_0_AllReduce-op7", 3, "AllReduce", 25000, 3000, 1400, 60),
            (2, "stream_4_0_Receive-op9", 4, "Receive", 20600, 600, None, None),
        ]


def test_any_file_of_a_rank_counts_as_changed(job: Path, tmp_path: Path) -> None:
    """If any file of a rank changes, this rank is read again, and no others."""
    store = tmp_path / "job.store"
    ingest_only(job, store)
    with hta_sql.ingest(job, store) as opened:
        assert opened.ingested
        assert [file.rank for file in opened.ingested.unchanged] == [0, 1]
    (job / "flops_summary_0.json").write_text('{"FLOPs": 1}')
    with hta_sql.ingest(job, store) as opened:
        assert opened.ingested
        assert [result.rank for result in opened.ingested.results] == [0]
        assert opened.sql("SELECT recorded_flops FROM cluster_ranks").rows() == [(1.0,)]


def test_less_is_enough(job: Path, tmp_path: Path) -> None:
    """A rank that has only communication data can be ingested."""
    for name in FILES[:3]:
        (job / name).unlink()
    with hta_sql.ingest(job, tmp_path / "job.store") as store:
        rows = store.sql("SELECT step, total_ns, communication_wait_ns FROM cluster_step_traces")
        assert rows.rows() == [(1, None, 800), (2, None, 60), (None, None, 430)]
        assert store.run("cluster_step_trace").rows() == []


def test_it_stands_beside_traces(job: Path, tmp_path: Path) -> None:
    """In a folder with traces, cluster data becomes a separate capture."""
    (job / "rank1.json").write_text(json.dumps(trace_of(1, 10.0)))
    with hta_sql.ingest(job, tmp_path / "job.store", run="job") as store:
        assert store.runs() == ["job", "job-capture2"]


def test_other_files_of_the_profiler_are_named(
    job: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Other MindSpore files are skipped with a warning that lists the supported names."""
    (job / "ascend_timeline_display_0.json").write_text("[]")
    (job / "framework_raw_0.csv").write_text("a,b\n")
    with caplog.at_level(logging.WARNING):
        ingest_only(job, tmp_path / "job.store")
    (message,) = [record.message for record in caplog.records]
    assert "ascend_timeline_display_0.json, framework_raw_0.csv" in message
    assert "step_trace_raw_N_detail_time.csv" in message


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("step_trace_raw_1_detail_time.csv", "step_num,total\n1,2\n", "no column start_point"),
        ("hccl_raw_0.csv", "", "no column step_num"),
        ("flops_summary_0.json", "{", "not JSON"),
        ("flops_summary_0.json", "[]", "must contain a JSON object"),
        pytest.param("flops_summary_0.json", "[" * 100_000, "not JSON", id="nested too deeply"),
        ("hccl_raw_0.csv", b"step_num,\xff", "not UTF-8"),
    ],
)
def test_a_broken_file_costs_its_rank(
    job: Path, tmp_path: Path, name: str, content: str | bytes, says: str
) -> None:
    """A malformed file is named in the error with the cause, and the other rank is ingested."""
    (job / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TraceError, match=says) as caught:
        hta_sql.ingest(job, tmp_path / "job.store")
    assert name in str(caught.value)
    with hta_sql.open(tmp_path / "job.store") as store:
        assert store.ranks() == [1 if "_0" in name else 0]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (",1000,2000,1000,1100,", ",1000,2000,1000,oops,", "'oops' is not a number"),
        (",3001,1001,2100,2901,100,801,100", ",3001", "a different number of cells"),
    ],
)
def test_a_broken_cell_is_no_null(job: Path, tmp_path: Path, old: str, new: str, says: str) -> None:
    """A row with text instead of a number, or with missing cells, is an error."""
    path = job / "step_trace_raw_1_detail_time.csv"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(TraceError, match=says):
        hta_sql.ingest(job, tmp_path / "job.store")


def test_two_of_a_kind_are_refused(job: Path, tmp_path: Path) -> None:
    """Two files of the same kind for one rank are refused."""
    shutil.copy(job / FILES[2], job / "ascend_cluster_analyse_model-parallel_1_2_0.csv")
    with pytest.raises(TraceError, match="another file of this kind"):
        hta_sql.ingest(job, tmp_path / "job.store")
