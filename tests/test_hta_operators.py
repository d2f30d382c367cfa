"""Tests of TraceAnalysis for operators, annotations and kernel sequences.

The numbers are computed by hand from tests/traces/annotated_operators.json, whose rows the golden
tests explain.
"""

from __future__ import annotations

import gzip
import inspect
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.errors import ParameterError, RankError, TraceError
from hta_sql.hta.trace_analysis import TraceAnalysis

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACE = Path(__file__).parent / "traces" / "annotated_operators.json"
PATTERN = "aten::linear|void gemm<float, 4>(float*, int)|void bias(float*)|Memset (Device)"

SIGNATURES = {
    "get_frequent_cuda_kernel_sequences": [
        "operator_name",
        "output_dir",
        "min_pattern_len",
        "rank",
        "top_k",
        "visualize",
        "compress_other_kernels",
    ],
    "get_aten_op_kernels_and_delay": ["ranks", "sort_by"],
    "get_gpu_user_annotation_breakdown": [
        "use_gpu_annotation",
        "visualize",
        "duration_ratio",
        "num_kernels",
        "allowlist_patterns",
        "image_renderer",
    ],
    "get_gpu_kernels_with_user_annotations": ["rank", "expand_names", "shorten_names"],
}


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the trace as rank 0 of a job; the first test that opens the job ingests it."""
    folder = tmp_path_factory.mktemp("traces")
    shutil.copy(TRACE, folder / "rank-0.json")
    return folder


@pytest.fixture
def analysis(traces: Path) -> Iterator[TraceAnalysis]:
    """Open the job with HTA's class."""
    with TraceAnalysis(trace_dir=traces) as opened:
        yield opened


def original() -> list[dict[str, Any]]:
    """Return the events of the trace."""
    events: list[dict[str, Any]] = json.loads(TRACE.read_text(encoding="utf-8"))["traceEvents"]
    return events


def overlaid(folder: Path) -> list[dict[str, Any]]:
    """Return the events of the only trace in a folder."""
    (path,) = folder.iterdir()
    assert path.name == "overlaid_rank-0.json.gz"
    events: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return events


@pytest.mark.parametrize(("method", "parameters"), SIGNATURES.items())
def test_methods_take_htas_parameters(method: str, parameters: list[str]) -> None:
    """Parameters have HTA's names and order."""
    signature = inspect.signature(getattr(TraceAnalysis, method))
    assert list(signature.parameters)[1:] == parameters


def test_frequent_sequences_have_htas_columns(analysis: TraceAnalysis, tmp_path: Path) -> None:
    """Two calls of aten::linear launch the same three operations, which take 34 µs in total."""
    out = tmp_path / "out"
    out.mkdir()
    frame = analysis.get_frequent_cuda_kernel_sequences("aten::linear", out)
    assert frame.to_dict(orient="records") == [
        {
            "pattern": PATTERN,
            "count": 2,
            "GPU kernel duration (us)": 34.0,
            "CPU op duration (us)": 40.0,
        }
    ]


def test_the_written_trace_marks_the_sequences(analysis: TraceAnalysis, tmp_path: Path) -> None:
    """In an uncompressed trace, only the two calls' events change: they get a Patterns argument."""
    out = tmp_path / "out"
    out.mkdir()
    analysis.get_frequent_cuda_kernel_patterns("aten::linear", out, compress_other_kernels=False)
    events = overlaid(out)
    for number, event in enumerate(original()):
        if 3 <= number <= 18:
            event["args"]["Patterns"] = {PATTERN: 2}
        assert events[number] == event, number


def test_the_written_trace_can_be_compressed(analysis: TraceAnalysis, tmp_path: Path) -> None:
    """Other events are renamed to numbers, and an added event maps the numbers to names."""
    out = tmp_path / "out"
    out.mkdir()
    analysis.get_frequent_cuda_kernel_sequences("aten::linear", out)
    *events, meanings = overlaid(out)
    before = original()
    assert len(events) == len(before)
    assert meanings["name"] == "hta_sql: names of compressed events"
    assert meanings["ts"] == 0
    for number, (event, was) in enumerate(zip(events, before, strict=True)):
        if 3 <= number <= 18:
            assert event["name"] == was["name"]
            assert event["args"]["Patterns"] == {PATTERN: 2}
        else:
            assert event["args"] == {}
            assert meanings["args"][event["name"]] == was["name"]


def test_meanings_go_to_the_profilers_own_span_where_there_is_one(tmp_path: Path) -> None:
    """If the profiler's own span exists, it gets the names as in HTA, and no event is added."""
    folder, out = tmp_path / "traces", tmp_path / "out"
    folder.mkdir()
    out.mkdir()
    span = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans"}
    events = [*original(), span | {"tid": "PyTorch Profiler", "ts": 0, "dur": 300, "args": {}}]
    (folder / "rank-0.json").write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    with TraceAnalysis(trace_dir=folder) as analysis:
        analysis.get_frequent_cuda_kernel_sequences("aten::linear", out)
    written = overlaid(out)
    assert len(written) == len(events)
    assert written[-1]["name"] == "PyTorch Profiler (0)"
    assert written[-1]["args"][written[0]["name"]] == "ProfilerStep#1"


def test_only_the_top_sequences_are_marked(analysis: TraceAnalysis, tmp_path: Path) -> None:
    """The data frame has all sequences, but the trace only marks the first one in sort order."""
    out = tmp_path / "out"
    out.mkdir()
    frame = analysis.get_frequent_cuda_kernel_sequences(
        "cudaLaunch", out, min_pattern_len=1, top_k=1, compress_other_kernels=False
    )
    assert list(frame["count"]) == [2, 2, 1]
    marked = [n for n, e in enumerate(overlaid(out)) if "Patterns" in e.get("args", {})]
    assert marked == [6, 9, 14, 17]


def test_nothing_found_is_an_empty_frame_and_no_trace(
    analysis: TraceAnalysis, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If nothing is found, the data frame only has HTA's columns, and no trace is written."""
    out = tmp_path / "out"
    out.mkdir()
    frame = analysis.get_frequent_cuda_kernel_sequences("aten::clone", out)
    assert frame.empty
    assert "pattern" in frame
    assert list(out.iterdir()) == []
    assert "with 'aten::clone' in its name launched 3 or more kernels and copies" in caplog.text
    assert len(analysis.get_frequent_cuda_kernel_sequences("aten::linear", None)) == 1


def test_sequences_say_what_is_wrong_with_an_argument(
    analysis: TraceAnalysis, tmp_path: Path
) -> None:
    """An empty name, a missing folder or an unknown rank is an error that states the problem."""
    with pytest.raises(ParameterError, match="operator_name is empty"):
        analysis.get_frequent_cuda_kernel_sequences("", tmp_path)
    with pytest.raises(ParameterError, match="is not a folder"):
        analysis.get_frequent_cuda_kernel_sequences("aten::linear", tmp_path / "none")
    with pytest.raises(RankError, match="No rank 7"):
        analysis.get_frequent_cuda_kernel_sequences("aten::linear", tmp_path, rank=7)


def test_a_trace_that_was_changed_is_not_written_anew(tmp_path: Path) -> None:
    """A trace that changed since it was ingested is an error."""
    source = Path(shutil.copy(TRACE, tmp_path / "rank-0.json"))
    with TraceAnalysis(trace_dir=tmp_path) as analysis:
        source.write_text(json.dumps({"traceEvents": original()[:5]}), encoding="utf-8")
        with pytest.raises(TraceError, match="Ingest it again"):
            analysis.get_frequent_cuda_kernel_sequences("aten::linear", tmp_path)


def test_aten_ops_have_their_kernels_and_delays(analysis: TraceAnalysis) -> None:
    """aten::addmm launches after 2 µs, and its kernels start 14 and 36 µs after their launch."""
    frames = analysis.get_aten_op_kernels_and_delay(sort_by=["avg_runtime_delay"])
    assert list(frames) == [0]
    assert frames[0].to_dict(orient="records") == [
        {
            "aten_op_name": "aten::mm",
            "kernel_sequence": "sgemm",
            "occurrence_count": 1,
            "avg_aten_op_launch_delay": 7.0,
            "avg_runtime_delay": 50.0,
        },
        {
            "aten_op_name": "aten::addmm",
            "kernel_sequence": "void gemm<float, 4>(float*, int) -> void bias(float*)",
            "occurrence_count": 2,
            "avg_aten_op_launch_delay": 2.0,
            "avg_runtime_delay": 25.0,
        },
    ]
    with pytest.raises(ParameterError, match="sort_by contains 'count'"):
        analysis.get_aten_op_kernels_and_delay(sort_by=["count"])


def test_each_rank_has_its_own_aten_ops(tmp_path: Path) -> None:
    """Each rank has its own rows, so rank 1 does not repeat those of rank 0."""
    files = {}
    for rank in (0, 1):
        files[rank] = str(tmp_path / f"rank-{rank}.json")
        shutil.copy(TRACE, files[rank])
    with TraceAnalysis(trace_files=files, trace_dir=tmp_path) as analysis:
        frames = analysis.get_aten_op_kernels_and_delay(ranks=[1, 0])
    assert list(frames) == [1, 0]
    assert frames[0].equals(frames[1])
    assert list(frames[1]["occurrence_count"]) == [2, 1]


def test_user_annotations_are_timed_on_gpu_and_host(analysis: TraceAnalysis) -> None:
    """Annotations are timed on the GPU or on the host, and sorted by name."""
    on_gpu = analysis.get_gpu_user_annotation_breakdown()
    assert on_gpu is not None
    assert list(on_gpu.columns) == [
        "name",
        "sum (us)",
        "max (us)",
        "min (us)",
        "stddev",
        "mean (us)",
        "rank",
    ]
    assert list(on_gpu["name"]) == ["inner", "outer"]
    assert list(on_gpu["sum (us)"]) == [16.0, 90.0]
    assert list(on_gpu["stddev"]) == [0.0, 0.0]
    on_host = analysis.get_gpu_user_annotation_breakdown(use_gpu_annotation=False)
    assert on_host is not None
    assert list(on_host["name"]) == ["ProfilerStep#1", "inner", "outer"]
    assert list(on_host["mean (us)"]) == [200.0, 30.0, 80.0]


def test_annotations_beyond_the_number_become_others(analysis: TraceAnalysis) -> None:
    """Annotations beyond the limit become ``others``, unless they match an allowlist pattern."""
    frame = analysis.get_gpu_user_annotation_breakdown(
        use_gpu_annotation=False, num_kernels=1, allowlist_patterns=["^in"]
    )
    assert frame is not None
    assert list(frame["name"]) == ["ProfilerStep#1", "inner", "others"]


def test_kernels_have_the_annotation_of_their_launch(analysis: TraceAnalysis) -> None:
    """Each kernel has the annotations around its launch, in columns named like HTA's."""
    frame = analysis.get_gpu_kernels_with_user_annotations(0)
    assert frame is not None
    known = analysis.t.symbol_table.get_sym_id_map()
    first, *_, last = frame.to_dict(orient="records")
    assert first == {
        **analysis.t.get_trace(0).loc[8].to_dict(),
        "user_annotation": known["inner"],
        "annotation_path": "outer / inner",
        "s_name": "gemm",
        "s_cat": "kernel",
        "s_user_annotation": "inner",
    }
    assert (first["index"], first["name"]) == (8, known["void gemm<float, 4>(float*, int)"])
    assert (last["s_name"], last["user_annotation"], last["s_user_annotation"]) == ("stray", -1, "")
    assert list(frame["s_user_annotation"].value_counts().sort_index()) == [1, 3, 4]
    plain = analysis.get_gpu_kernels_with_user_annotations(0, expand_names=False)
    assert plain is not None
    assert "s_name" not in plain
    long = analysis.get_gpu_kernels_with_user_annotations(0, shorten_names=False)
    assert long is not None
    assert long["s_name"][0] == "void gemm<float, 4>(float*, int)"


def test_annotated_kernels_are_in_the_scope_of_the_analysis(analysis: TraceAnalysis) -> None:
    """Annotated kernels do not change if the data frames of ``t`` are changed."""
    before = analysis.get_gpu_kernels_with_user_annotations(0)
    analysis.t.parse_traces()
    analysis.t.get_trace(0)["dur"] = -1
    after = analysis.get_gpu_kernels_with_user_annotations(0)
    assert before is not None
    assert after is not None
    assert before.equals(after)


def test_without_annotations_there_is_no_frame(tmp_path: Path) -> None:
    """Without annotations, the result is None, as in HTA."""
    shutil.copy(TRACE.with_name("overlap_two_streams.json"), tmp_path / "rank-0.json")
    with TraceAnalysis(trace_dir=tmp_path) as analysis:
        assert analysis.get_gpu_user_annotation_breakdown() is None
        assert analysis.get_gpu_user_annotation_breakdown(use_gpu_annotation=False) is None
        assert analysis.get_gpu_kernels_with_user_annotations(0) is None


@pytest.mark.parametrize(
    "draw",
    [
        lambda a, out: a.get_frequent_cuda_kernel_sequences("aten::", out, visualize=True),
        lambda a, _: a.get_gpu_user_annotation_breakdown(visualize=True),
    ],
)
def test_charts_are_saved_on_request(draw: Any, analysis: TraceAnalysis, tmp_path: Path) -> None:
    """Outside a notebook, a chart is saved as a page in the store."""
    out = tmp_path / "out"
    out.mkdir()
    charts = analysis.store.path / "charts"
    before = set(charts.glob("*"))
    draw(analysis, out)
    (path,) = set(charts.iterdir()) - before
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
