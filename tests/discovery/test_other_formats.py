"""Files in other formats are refused with an error that names the format."""

from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path

import pytest

import hta_sql
from hta_sql.errors import TraceFormatError, TraceNotFoundError
from hta_sql.traces.peek import peek
from tests.safety.conftest import trace_of
from tests.shared_stores import ingest_only

COMPLETE = {"ph": "X", "name": "work", "pid": 1, "tid": 1, "ts": 1, "dur": 2}

FOREIGN: dict[str, tuple[object, str]] = {
    "execution trace": (
        {
            "schema": "1.1.1-chakra.0.0.4",
            "pid": 1,
            "time": "2024-01-01",
            "start_ts": 5,
            "nodes": [{"id": 1, "name": "aten::mm", "ctrl_deps": [0], "data_deps": [], "attr": []}],
        },
        "Chakra execution trace",
    ),
    "memory timeline": ([[1, 0, [5, 6], 0], [2, 1, [5, 6], 0]], "memory timeline"),
    "memory timeline, raw": ([[1, 0], [[0, 1], [2, 3]]], "memory timeline"),
    "VizTracer": ({"traceEvents": [COMPLETE], "viztracer_metadata": {}}, "VizTracer"),
    "rocprof": (
        {"traceEvents": [COMPLETE | {"args": {"BeginNs": "1", "EndNs": "2"}}], "otherData": {}},
        "rocprof",
    ),
    "nvprof": ([COMPLETE | {"name": "[CUDA memcpy HtoD]", "cat": "cuda"}], "nvprof"),
    "TensorFlow": (
        {
            "displayTimeUnit": "ns",
            "traceEvents": [
                {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
                COMPLETE | {"args": {"long_name": "MatMul:MatMul", "tf_op": "MatMul"}},
            ],
        },
        "TensorFlow",
    ),
    "speedscope": ({"$schema": "https://www.speedscope.app/file-format-schema.json"}, "speedscope"),
    "OpenTelemetry": ({"resourceSpans": []}, "OpenTelemetry"),
    "Perfetto": (
        {"traceEvents": [COMPLETE | {"cat": "disabled-by-default-v8.gc"}], "metadata": {}},
        "Chrome or Perfetto",
    ),
    "another program": (
        {"traceEvents": [COMPLETE | {"cat": "my_category"}], "displayTimeUnit": "ms"},
        "a Chrome trace from another program",
    ),
    "another program, a list": ([COMPLETE, COMPLETE | {"ph": "B"}], "another program"),
}

KINETO: dict[str, object] = {
    "no events, no metadata": {"traceEvents": []},
    "no events": {"schemaVersion": 1, "traceEvents": []},
    "metadata events only": {
        "traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]
    },
    "unknown categories": {"schemaVersion": 1, "traceEvents": [COMPLETE | {"cat": "brand_new"}]},
    "known categories": {"traceEvents": [COMPLETE | {"cat": "cpu_op"}]},
    "a list": [COMPLETE | {"cat": "kernel"}],
}


def write(folder: Path, content: object, name: str = "rank0.json") -> str:
    """Write content as JSON and return the path."""
    path = folder / name
    path.write_text(json.dumps(content))
    return str(path)


@pytest.mark.parametrize("kind", FOREIGN)
def test_it_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    """The error names the file, its format and what to pass instead."""
    content, looks_like = FOREIGN[kind]
    path = write(tmp_path, content)
    with pytest.raises(TraceFormatError, match="not a Kineto trace") as caught:
        hta_sql.ingest(path, tmp_path / "job.store")
    message = str(caught.value)
    assert path in message
    assert looks_like in message
    assert "ass " in message.rpartition("looks like")[2]  # says what to pass instead
    assert not (tmp_path / "job.store").exists()


def test_the_evidence_may_stand_far_behind(tmp_path: Path) -> None:
    """A trace is recognized even if a megabyte of unknown events precedes its first kernel."""
    events = [COMPLETE | {"cat": "brand_new", "name": "x" * 200} for _ in range(5000)]
    peek(write(tmp_path, {"traceEvents": [*events, COMPLETE | {"cat": "kernel"}]}))
    with pytest.raises(TraceFormatError, match="another program"):
        peek(write(tmp_path, {"traceEvents": events}))


@pytest.mark.parametrize("kind", KINETO)
def test_kineto_is_accepted(tmp_path: Path, kind: str) -> None:
    """A Kineto trace is accepted with minimal metadata."""
    with hta_sql.ingest(write(tmp_path, KINETO[kind]), tmp_path / "job.store") as store:
        assert store.ranks() == [0]


def test_an_empty_list_is_nothing(tmp_path: Path) -> None:
    """An empty list is refused because it has no trace events."""
    with pytest.raises(TraceFormatError, match="without trace events"):
        hta_sql.ingest(write(tmp_path, []), tmp_path / "job.store")


@pytest.mark.parametrize(
    ("content", "looks_like"),
    [
        (pickle.dumps({"weights": []}), "pickle"),
        (b"SQLite format 3\0" + b"\0" * 84, "SQLite"),
        (b"PAR1" + b"\0" * 20, "Parquet"),
    ],
)
def test_binary_files_are_refused_by_name(tmp_path: Path, content: bytes, looks_like: str) -> None:
    """A binary file is refused, and the error names its format."""
    path = tmp_path / "rank0.json"
    path.write_bytes(content)
    with pytest.raises(TraceFormatError, match=looks_like):
        hta_sql.ingest(str(path), tmp_path / "job.store")


def test_the_other_files_of_a_folder_land(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In a folder, files in other formats and files that HTA or hta_sql wrote are skipped."""
    write(tmp_path, trace_of(0, 10.0), "rank0.json")
    write(tmp_path, FOREIGN["execution trace"][0], "rank1_et.json")
    write(tmp_path, trace_of(5, 10.0), "rank0_with_counters.json")
    write(tmp_path, trace_of(6, 10.0), "overlaid_critical_path_rank0.json")
    (tmp_path / "sub").mkdir()
    ingest_only(write(tmp_path / "sub", trace_of(1, 10.0)), tmp_path / "results")
    with caplog.at_level(logging.WARNING):
        store = hta_sql.ingest(tmp_path, tmp_path / "out")
    with store:
        assert store.ranks() == [0, 1]
        sources = [source for (source,) in store.sql("SELECT source FROM ranks").rows()]
    assert not any("results" in source for source in sources)
    (warning,) = [record.message for record in caplog.records if "Skipped" in record.message]
    assert "rank1_et.json" in warning
    assert "execution trace" in warning


def test_a_store_is_no_folder_of_traces(tmp_path: Path) -> None:
    """A store is not read as a trace folder, whatever its name."""
    ingest_only(write(tmp_path, trace_of(0, 10.0)), tmp_path / "results")
    with pytest.raises(TraceNotFoundError, match="is a store"):
        hta_sql.ingest(tmp_path / "results", tmp_path / "job.store")
