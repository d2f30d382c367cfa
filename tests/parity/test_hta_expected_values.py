"""Numbers that HTA's own tests expect for its traces, by their id in tests/hta_values/ids.py.

If HTA's number is wrong, the test asserts ours and the docstring names the quirk
(docs/hta_differences.md). Further numbers are in the tests of the critical path, trace diff,
filters, call stacks and counters.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hta_sql import TraceAnalysis, TraceStore
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.methods.counters import TimeSeriesTypes
from tests.parity.jobs import TRACES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def analysis(jobs_store: TraceStore) -> Iterator[Callable[[str], TraceAnalysis]]:
    """Return a function that opens a job of the shared store as HTA's users do."""
    opened: list[TraceAnalysis] = []

    def open_job(job: str) -> TraceAnalysis:
        opened.append(TraceAnalysis(store=jobs_store.path, run=job))
        return opened[-1]

    yield open_job
    for one in opened:
        one.close()


def test_a1_annotations_on_the_gpu(analysis: Callable[[str], TraceAnalysis]) -> None:
    """There are three device annotations, and the sum of each equals that of its events."""
    job = analysis("hta_ns_resolution")
    frame = job.get_gpu_user_annotation_breakdown(True, visualize=False, num_kernels=1000)
    assert frame is not None
    rows = job.store.sql(
        "SELECT name, sum(dur) / 1000 FROM annotations WHERE run = $run AND on_gpu "
        "AND NOT in_last_step GROUP BY name ORDER BY name",
        {"run": job.run},
    ).rows()
    assert sorted(zip(frame["name"], frame["sum (us)"], strict=True)) == rows
    assert len(rows) == 3


def test_a2_annotations_on_the_host(analysis: Callable[[str], TraceAnalysis]) -> None:
    """There are twelve annotations on the host."""
    job = analysis("hta_ns_resolution")
    frame = job.get_gpu_user_annotation_breakdown(False, visualize=False, num_kernels=1000)
    assert frame is not None
    assert len(frame) == 12


def test_a3_names_that_are_always_shown(analysis: Callable[[str], TraceAnalysis]) -> None:
    """The frame has five top names, two that match the pattern, and a row for all others."""
    frame = analysis("hta_ns_resolution").get_gpu_user_annotation_breakdown(
        False, visualize=False, num_kernels=5, allowlist_patterns=["Optimizer"]
    )
    assert frame is not None
    assert len(frame) == 8
    assert frame["name"].str.contains("Optimizer").sum() == 2


def test_a4_kernels_with_annotations(analysis: Callable[[str], TraceAnalysis]) -> None:
    """All kernels are listed, and 36 of them were launched within the optimizer annotation.

    HTA assigns only 27 kernels to it, because it uses the annotation's copy on the GPU (launch).
    """
    frame = analysis("hta_ns_resolution").get_gpu_kernels_with_user_annotations(rank=0)
    assert frame is not None
    assert len(frame) == 4876
    assert (frame["s_user_annotation"] == "Optimizer.step#SGD.step").sum() == 36
    one = frame[frame["correlation"] == 164926].iloc[0]
    assert one["s_user_annotation"] == "Optimizer.step#SGD.step"
    assert one["s_name"] == "at::native::::multi_tensor_apply_kernel"


@pytest.mark.parametrize(
    ("number", "job", "annotation", "instance"),
    [
        ("A5", "hta_ns_resolution", "ProfilerStep", 1),
        ("A27", "hta_cp_event_sync", "ProfilerStep", 0),
        ("A28", "hta_cp_event_sync_multi", "", None),
        ("A29", "hta_amd_trace", "ProfilerStep", 0),
    ],
)
def test_a5_a27_a28_a29_critical_paths_are_found(
    analysis: Callable[[str], TraceAnalysis],
    number: str,
    job: str,
    annotation: str,
    instance: int | None,
) -> None:
    """Each of the four jobs has a critical path.

    For A29, HTA selects instance 1, which is the copy on the GPU (Q50).
    """
    found = analysis(job).critical_path_analysis(0, annotation, instance)
    assert found is not None, number
    assert found[1] is True


def test_a15_sequences_of_an_operator_that_launches_none(
    analysis: Callable[[str], TraceAnalysis], tmp_path: Path
) -> None:
    """An operator without launches has an empty frame, and no trace is written."""
    frame = analysis("hta_df_index_resolver").get_frequent_cuda_kernel_sequences(
        "aten::clone", output_dir=str(tmp_path), rank=1
    )
    assert frame.empty
    assert list(tmp_path.iterdir()) == []


def test_a16_trace_with_counters(analysis: Callable[[str], TraceAnalysis], tmp_path: Path) -> None:
    """The file has at least 12,000 counter events with the expected five names."""
    both = TimeSeriesTypes.QUEUE_LENGTH | TimeSeriesTypes.MEMCPY_BANDWIDTH
    written = analysis("hta_negative_queue_length").generate_trace_with_counters(
        both, output_dir=tmp_path
    )
    assert [path.name for path in tmp_path.iterdir()] == [Path(written[0]).name]
    events: list[dict[str, Any]] = json.loads(gzip.decompress(Path(written[0]).read_bytes()))[
        "traceEvents"
    ]
    names = Counter(event["name"] for event in events if event["ph"] == "C")
    assert names.total() >= 12_000
    assert set(names) == {
        *("Queue Length", "Memcpy DtoH", "Memcpy HtoD", "Memcpy DtoD", "Memset"),
    }


def test_a17_a18_no_counter_is_negative(analysis: Callable[[str], TraceAnalysis]) -> None:
    """No counter is negative, and the summaries have four kinds of copies and six streams."""
    job = analysis("hta_negative_queue_length")
    assert (job.get_memory_bw_time_series()[0]["memory_bw_gbps"] >= 0).all()
    assert (job.get_queue_length_time_series()[0]["queue_length"] >= 0).all()
    bandwidth, queues = job.get_memory_bw_summary([0]), job.get_queue_length_summary([0])
    assert bandwidth is not None
    assert queues is not None
    assert (len(bandwidth), len(queues)) == (4, 6)


def test_a19_a_rank_without_gpu(analysis: Callable[[str], TraceAnalysis]) -> None:
    """A job without a GPU has empty results and raises no error."""
    job = analysis("hta_cpu_only")
    ranks = job.store.ranks(job.run)
    assert job.get_queue_length_time_series(ranks) == {}
    assert job.get_queue_length_summary(ranks) is None
    assert job.get_memory_bw_summary(ranks) is None


def test_a20_counters_of_the_device_by_operator(
    analysis: Callable[[str], TraceAnalysis],
) -> None:
    """There are 77 counter ranges, and the sixth belongs to a convolution."""
    frame = analysis("hta_cupti_profiler").get_cupti_counter_data_with_operators()[0]
    assert len(frame) == 77
    row = frame.iloc[5]
    assert row["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"] == 86_114_304
    assert "fft2d_r2c_32x32" in row["name"]
    assert row[["top_level_op", "bottom_level_op"]].tolist() == [
        *("aten::conv2d", "aten::cudnn_convolution"),
    ]


def test_a36_arguments_of_collectives(jobs_store: TraceStore) -> None:
    """There are 21 NCCL kernels, and the longest one has the expected arguments."""
    rows = (
        jobs_store.sql(
            "SELECT * FROM gpu_ops WHERE run = 'hta_nccl_parser_config' AND kind = 'kernel' "
            "AND contains(name, 'ncclKernel') ORDER BY dur DESC"
        )
        .arrow()
        .to_pylist()
    )
    assert len(rows) == 21
    expected = {"collective": "allreduce", "in_elems": 2049000, "out_elems": 2049000}
    expected |= {"in_split_sizes": "[]", "out_split_sizes": "[]", "pg_name": "0"}
    expected |= {"pg_desc": "default_pg", "pg_ranks": "[0, 1]"}
    assert {column: rows[0][column] for column in expected} == expected


def test_a37_arguments_of_triton(jobs_store: TraceStore) -> None:
    """A Triton operator's backend and hash are among the arguments that have no column."""
    rows = jobs_store.sql(
        "SELECT o.name, a.args->>'kernel_backend', a.args->>'kernel_hash' FROM event_args AS a "
        "JOIN cpu_ops AS o USING (run, rank, event_id) "
        "WHERE o.run = 'hta_triton_example' AND a.args->>'kernel_backend' <> ''"
    ).rows()
    digest = "cqaokwf2bph4egogzevc22vluasiyuui4i54zpemp6knbsggfbuu"
    assert rows == [("triton_poi_fused_add_cos_sin_0", "triton", digest)]


def test_a38_start_on_the_clock(analysis: Callable[[str], TraceAnalysis]) -> None:
    """The trace start is that of the first event; HTA uses the first event that it keeps."""
    job = analysis("hta_triton_example")
    query = "SELECT start_ns FROM ranks WHERE run = $run"
    ((start,),) = job.store.sql(query, {"run": job.run}).rows()
    kept = job.store.run("trace_events", runs=[job.run], include_last_profiler_step=True)
    first = min(kept.arrow().column("ts").to_pylist())
    assert start == 2413668742269099 + 1727743122000000000
    assert start + first == 2413669096090100 + 1727743122000000000


@pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not here")
@pytest.mark.parametrize(
    ("job", "rank"),
    [("hta_rank_unavailable", 0), ("hta_distributed_info_unavailable", 0)],
)
def test_a44_ranks_of_traces_that_do_not_say(
    analysis: Callable[[str], TraceAnalysis], job: str, rank: int
) -> None:
    """A trace that states no rank is rank 0, as in HTA."""
    opened = analysis(job)
    assert opened.store.ranks(opened.run) == [rank]


def test_a44_a_list_of_files(tmp_path: Path) -> None:
    """In a list of files, the rank that a file states is used."""
    path = tmp_path / "trace.json"
    path.write_text('{"distributedInfo": {"rank": 1}, "traceEvents": []}', encoding="utf-8")
    with Trace([str(path)]) as trace:
        assert trace.trace_files == {1: str(path)}


def test_a45_metadata(analysis: Callable[[str], TraceAnalysis]) -> None:
    """The metadata includes the process groups, which HTA's test does not expect."""
    job = analysis("hta_cpu_only")
    query = "SELECT metadata FROM ranks WHERE run = $run AND rank = 34"
    ((text,),) = job.store.sql(query, {"run": job.run}).rows()
    metadata = json.loads(text)
    assert (metadata["schemaVersion"], metadata["deviceProperties"]) == (1, [])
    info = metadata["distributedInfo"]
    assert (info["backend"], info["rank"], info["world_size"]) == ("gloo", 34, 300)
    assert info["pg_count"] == 10
    assert len(info["pg_config"]) == 11
