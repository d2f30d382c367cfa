"""Tests of HTA's methods for execution traces and raw memory timelines."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd
import pytest

from hta_sql.errors import ParameterError, TraceFormatError, TraceNotFoundError
from hta_sql.hta.common.execution_trace import (
    COLUMNS,
    add_et_column,
    correlate_execution_trace,
    load_execution_trace,
)
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.memory_analysis import MemoryAnalysis

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED = Path(__file__).resolve().parents[2] / "shared"
CONVNET = SHARED / "expected" / "torch_key_averages" / "convnet_memtimeline"
MEMORY = SHARED / "traces" / "hta_memory_analysis" / "memory_timeline.raw.gz"


def node(number: int, name: str, rf_id: int, schema: str = "") -> dict[str, Any]:
    """Return a node in the format that PyTorch has used since 2023."""
    attrs = [("rf_id", "uint64", rf_id), ("op_schema", "string", schema), ("tid", "uint64", 1)]
    return {
        "id": number,
        "name": name,
        "ctrl_deps": 1,
        "inputs": {"values": [], "shapes": [[2, 3], []], "types": ["Tensor(float)", "Int"]},
        "outputs": {"values": [], "shapes": [[2]], "types": ["Tensor(float)"]},
        "attrs": [{"name": n, "type": t, "value": v} for n, t, v in attrs],
    }


def event(name: str, ts: int, cat: str = "cpu_op", **args: Any) -> dict[str, Any]:
    """Return a host event that takes 1 µs."""
    base = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 1}
    return base | {"args": {key.replace("_", " "): value for key, value in args.items()}}


EVENTS = [
    event("aten::mm", 0, External_id=77, Record_function_id=5),
    event("## forward ##", 1, "user_annotation", External_id=78, Record_function_id=6),
    event("aten::add", 2, External_id=7, Record_function_id=0),
    event("aten::renamed", 3, External_id=8),
    event("aten::none", 4, External_id=0),
    event("cudaLaunchKernel", 5, "cuda_runtime", External_id=5),
]
NODES = [
    node(1, "[pytorch|profiler|execution_trace|process]", 0),
    node(12, "aten::mm", 5, "aten::mm(Tensor self, Tensor mat2) -> Tensor"),
    node(13, "## forward ##", 6),
    node(14, "aten::add", 7),
    node(15, "aten::other", 8),
    node(16, "aten::none", 0),
]


def write(path: Path, content: Any) -> Path:
    """Write a value as JSON, compressed if the file name ends in .gz."""
    text = json.dumps(content).encode("utf-8")
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[Trace]:
    """Open a trace whose events have Record function ids and External ids."""
    path = write(tmp_path / "trace.json", {"traceEvents": EVENTS})
    with Trace({0: str(path)}) as opened:
        yield opened


@pytest.mark.parametrize("name", ["et.json", "et.json.gz"])
def test_nodes_of_events(trace: Trace, tmp_path: Path, name: str) -> None:
    """Nodes are matched by Record function id or else by External id, if their names are equal."""
    et = load_execution_trace(write(tmp_path / name, {"schema": "1.1.1", "nodes": NODES}))
    correlate_execution_trace(trace, 0, et)
    frame = trace.get_trace(0)
    assert frame["et_node"].astype(object).where(frame["et_node"].notna(), None).tolist() == [
        *(12, 13, 14, None, None, None)
    ]
    for column in ("op_schema", "input_shapes", "output_types", "et_node_name"):
        add_et_column(frame, et, column)
    assert frame["op_schema"][0] == "aten::mm(Tensor self, Tensor mat2) -> Tensor"
    assert frame["input_shapes"][1] == [[2, 3], []]
    assert frame["output_types"][2] == ["Tensor(float)"]
    assert frame["et_node_name"][1] == "## forward ##"
    assert pd.isna(frame["op_schema"][3])
    with pytest.raises(ParameterError, match="No column 'shapes'"):
        add_et_column(frame, et, "shapes")
    with pytest.raises(ParameterError, match="correlate"):
        add_et_column(frame.drop(columns="et_node"), et, "op_schema")


def test_another_capture(trace: Trace, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An execution trace from a different capture causes a warning, and no event gets a node."""
    et = load_execution_trace(write(tmp_path / "et.json", {"nodes": [node(3, "aten::mm", 99)]}))
    with caplog.at_level(logging.WARNING):
        correlate_execution_trace(trace, 0, et)
    assert trace.get_trace(0)["et_node"].isna().all()
    assert "different times" in caplog.text


def test_nodes_of_the_first_schema(tmp_path: Path) -> None:
    """Nodes from PyTorch 2.0, which have no separate attributes, can be read."""
    old = {"id": 2, "name": "aten::mm", "parent": 1, "rf_id": 5, "op_schema": "s"}
    old |= {"inputs": [[1, 2], 3], "input_shapes": [[4], []], "input_types": ["Tensor", "Int"]}
    old |= {"outputs": [], "output_shapes": [], "output_types": []}
    et = load_execution_trace(write(tmp_path / "et.json", {"nodes": [old]}))
    (found,) = et.table.to_pylist()
    numbers = ("node_id", "parent_id", "record_function_id")
    assert [found[name] for name in numbers] == [2, 1, 5]
    frame = pd.DataFrame({"et_node": [2]})
    for column in COLUMNS:
        add_et_column(frame, et, column)
    told = frame.drop(columns="et_node").iloc[0].tolist()
    assert told == ["s", [[4], []], ["Tensor", "Int"], [], [], "aten::mm"]


@pytest.mark.parametrize("text", ["", "[1]", '{"nodes": 3}', '{"traceEvents": []}', "\xff"])
def test_what_is_no_execution_trace(tmp_path: Path, text: str) -> None:
    """If a file is not an execution trace, the error names the file."""
    path = tmp_path / "et.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(TraceFormatError, match=r"et\.json"):
        load_execution_trace(path)
    with pytest.raises(TraceNotFoundError):
        load_execution_trace(tmp_path / "none.json")


@pytest.mark.skipif(not CONVNET.is_dir(), reason="the public files are not beside the repository")
def test_a_real_execution_trace(tmp_path: Path) -> None:
    """All 598 operators and annotations of a recorded capture have a node."""
    et = load_execution_trace(CONVNET / "execution_trace.json.gz")
    path = tmp_path / "trace.json.gz"
    source = SHARED / "traces" / "torch_cpu" / "convnet_memtimeline" / "trace.json.gz"
    path.write_bytes(source.read_bytes())
    with Trace({0: str(path)}) as trace:
        correlate_execution_trace(trace, 0, et)
        frame = trace.get_trace(0)
        assert len(et.table) == 600
        assert frame["et_node"].notna().sum() == frame["external_id"].gt(0).sum() == 598


RAW = [
    [-1, 0, 100, 0],
    [-1, 0, 50, 1],
    [1000, 1, 7, 4],
    [1000, 1, 3, 4],
    [2000, 2, -10, 4],
    [1500, 1, 20, 7],
    [1500, 3, -50, 1],
]


def test_memory_timeline(tmp_path: Path) -> None:
    """The timeline has running sums by category, and initial memory counts from the first time."""
    frame = MemoryAnalysis(write(tmp_path / "memory.raw.json.gz", RAW)).get_memory_timeline()
    assert frame.pop("ts").tolist() == [1000, 1000, 2000, 1500]
    assert frame.to_numpy().tolist() == [
        [100, 50, 0, 0, 0, 0, 0, 0],
        [100, 50, 0, 0, 10, 0, 0, 0],
        [100, 50, 0, 0, 0, 0, 0, 0],
        [100, 0, 0, 0, 0, 0, 0, 20],
    ]
    assert frame["activation_bytes"].tolist() == [0, 10, 0, 0]


def shown(chart: alt.TopLevelMixin) -> list[dict[str, Any]]:
    """Return the data rows of a chart."""
    (rows,) = chart.to_dict()["datasets"].values()
    return list(rows)


def test_memory_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thinning keeps the peak, and the picture is written to the same path as in HTA."""
    monkeypatch.chdir(tmp_path)
    raw = [[1000 + i, 1, 1 << 30 if i == 777 else 0, 4] for i in range(5000)]
    raw[778][2] = -(1 << 30)
    analysis = MemoryAnalysis(write(tmp_path / "memory.raw.json", raw))
    values = shown(analysis.plot_memory_timeline(save_graph=True))
    assert max(v["gib"] for v in values if v["category"] == "activation") == 1
    assert len(values) <= 8 * 1001
    assert (tmp_path / "images" / "memory_plot.png").read_bytes()[:4] == b"\x89PNG"
    empty = MemoryAnalysis(write(tmp_path / "empty.raw.json", []))
    assert shown(empty.plot_memory_timeline()) == []


def test_what_is_no_memory_timeline(tmp_path: Path) -> None:
    """A trace is not accepted as a raw memory timeline."""
    path = write(tmp_path / "x.json", {"traceEvents": []})
    with pytest.raises(TraceFormatError, match=r"x\.json.*raw memory timeline"):
        MemoryAnalysis(path).get_memory_timeline()


@pytest.mark.skipif(not MEMORY.exists(), reason="the public files are not beside the repository")
def test_a35_a_real_memory_timeline() -> None:
    """A recorded memory timeline has the values that HTA's own test expects."""
    frame = MemoryAnalysis(MEMORY).get_memory_timeline()
    assert len(frame) == 7721
    expected = [102440608, 102228128, 19395584, 0, 2618160128, 58417152, 41811968, 25494440]
    assert frame.drop(columns="ts").iloc[744].tolist() == expected
