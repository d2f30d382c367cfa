"""Tests that compiled kernels are mapped to model code, by stacks in traces and Inductor's files.

The formats are those of PyTorch 2.14:

- torch/_inductor/profiler.py adds ``stack`` to the arguments of kernels (inductor_trace_handler).
- torch/_inductor/codecache.py writes kernel_information.json into AOTInductor packages.
- torch/_inductor/debug.py writes the node mappings.
- torch/_inductor/runtime/triton_heuristics.py adds ``kernel_file``, ``num_warps``, … to the
  operator that launches a Triton kernel.
"""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.cli.ingest import summary
from hta_sql.errors import TraceFormatError
from hta_sql.exports.redaction.names import Redactor
from hta_sql.exports.redaction.stores import redact_store
from hta_sql.ingestion.discover import discover
from hta_sql.store.disk.folder import store_folder
from hta_sql.traces.kernel_information import KERNEL_INFORMATION_NAME, read_kernel_information

JOB = Path(__file__).parent / "traces" / "compiled"
INFORMATION = "kernel_information.json"

SOURCES = ("name", "source_file", "source_line", "source_lines", "fused_operators", "source_method")
MODEL = "/home/me/job/model.py"
RELU, GEMM, MUL = "triton_poi_fused_relu_sigmoid_0", "ampere_sgemm_32x32", "triton_poi_fused_mul_1"


def sources(store: hta_sql.TraceStore) -> dict[str, list[Any]]:
    """Return the source columns of each kernel, by kernel name."""
    rows = [[row[name] for name in SOURCES] for row in store.run("kernel_table").records()]
    return {row[0]: row[1:] for row in rows}


def written(folder: Path, value: object, name: str = INFORMATION) -> Path:
    """Write one of Inductor's JSON files about kernels."""
    path = folder / name
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@pytest.mark.parametrize("reader", ["compiled", "SQL"])
def test_kernels_have_the_lines_and_operators_that_they_were_compiled_from(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels are matched by the stack in the event, by name, or by AOTInductor's library call."""
    monkeypatch.setenv("HTA_SQL_NATIVE", "1" if reader == "compiled" else "0")
    with hta_sql.ingest(JOB, tmp_path / "job.store") as store:
        assert sources(store) == {
            RELU: [MODEL, None, f"{MODEL}:6, {MODEL}:7", "relu, sigmoid", "kernel name"],
            GEMM: [MODEL, 8, f"{MODEL}:8", "mm_default", "operator name"],
            MUL: [MODEL, 9, f"{MODEL}:9", "mul", "event"],
            "add_kernel": [None] * 5,
        }
        kept = "SELECT kernel_backend, kernel_file, kernel_hash, num_warps, num_stages FROM cpu_ops WHERE name = $name"
        launch = ("triton", "/tmp/torchinductor_me/nv/cnv.py", "cnv", 8, 2)  # noqa: S108 - in a trace
        assert store.sql(kept, {"name": MUL}).rows() == [launch]
        calls = store.sql("SELECT called_from FROM python_calls ORDER BY event_id").rows()
        assert calls == [("train.py:40",), ("train.py:22",)]


def test_device_time_of_compiled_kernels_is_at_the_function_of_the_model(tmp_path: Path) -> None:
    """Forward has 40 + 20 + 10 µs of compiled kernels, plus an eager kernel of 5 µs."""
    with hta_sql.ingest(JOB, tmp_path / "job.store") as store:
        rows = store.run("source_lines").records()
    assert {row["frame"]: (row["compiled_device_ns"], row["device_total_ns"]) for row in rows} == {
        "job/model.py(5): forward": (70_000, 75_000),
        "train.py(20): step": (None, 75_000),
    }


def test_without_files_of_inductor_only_the_trace_itself_tells_a_source(tmp_path: Path) -> None:
    """Operators are not parsed from a kernel name, because operators contain its separator too."""
    with hta_sql.ingest(JOB / "rank0.json", tmp_path / "job.store") as store:
        found = sources(store)
        assert found.pop(MUL) == [MODEL, 9, f"{MODEL}:9", None, "event"]
        assert all(row == [None] * 5 for row in found.values())
        assert store.sql("SELECT count(*) FROM compiled_kernels").rows() == [(0,)]


def test_all_shapes_of_the_file_are_read(tmp_path: Path) -> None:
    """All formats are read: kernel_information.json, registry, node mappings, and bare stacks."""
    kernel = {"stack_traces": ["a"], "post_grad_nodes": ["mul"], "pre_grad_nodes": ["d"]}
    (plain,) = read_kernel_information(str(written(tmp_path, {"triton_0:3": kernel})))
    assert plain == (None, None, "triton_0", 3, ["mul"], ["d"], ["a"], None)
    registry = {"('Torch-Compiled Region: 0/0', True)": {"triton_0:3": kernel}}
    (of_region,) = read_kernel_information(str(written(tmp_path, registry)))
    assert of_region == ("Torch-Compiled Region: 0/0", True, *plain[2:])
    mappings = {
        "preToPost": {"d": ["mul"]},
        "postToPre": {"mul": ["d"]},
        "cppCodeToPost": {"triton_0:3": ["mul"]},
        "postToCppCode": {"mul": ["triton_0:3"]},
        "version": 2.0,
    }
    (mapped,) = read_kernel_information(str(written(tmp_path, mappings)))
    assert mapped == (None, None, "triton_0", 3, ["mul"], ["d"], [], None)
    (stacks,) = read_kernel_information(str(written(tmp_path, {"extern_kernels.mm:1": ["a", "b"]})))
    assert stacks == (None, None, "extern_kernels.mm", 1, [], [], ["a", "b"], None)


@pytest.mark.parametrize("text", ["[]", "{", '"text"', ""])
def test_a_damaged_file_is_named_and_costs_no_event(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning names the damaged file, all events are stored, and the kernels have no source."""
    shutil.copy(JOB / "rank0.json", tmp_path)
    (tmp_path / INFORMATION).write_text(text, encoding="utf-8")
    with caplog.at_level(logging.WARNING), hta_sql.ingest(tmp_path, tmp_path / "s.store") as store:
        assert store.sql("SELECT count(*) FROM gpu_ops").rows() == [(4,)]
        assert sources(store)[RELU] == [None] * 5
    assert INFORMATION in caplog.text
    with pytest.raises(TraceFormatError):
        read_kernel_information(str(tmp_path / INFORMATION))


def test_values_of_other_types_are_left_out(tmp_path: Path) -> None:
    """Values of unexpected types are ignored, but the strings in a mixed list are used."""
    odd = {
        "a:1": {"stack_traces": [1, "s"], "post_grad_nodes": "mul", "extern_semantic_key": 5},
        "b": 7,
        "": {},
        "('x', 1)": {},
        "c\ud800:2": ["\ud800"],
    }
    path = written(tmp_path, odd)
    assert [kernel[2:] for kernel in read_kernel_information(str(path))] == [
        ("a", 1, [], [], ["s"], None),
        ("('x', 1)", None, [], [], [], None),
        ("c?", 2, [], [], ["?"], None),
    ]


def test_a_file_belongs_to_the_traces_of_its_folder_otherwise_to_all(tmp_path: Path) -> None:
    """A file applies to the traces in its folder and below, and otherwise to all traces."""
    for rank in (0, 1):
        (tmp_path / f"r{rank}" / "torch_compile_debug" / "model").mkdir(parents=True)
        shutil.copy(JOB / "rank0.json", tmp_path / f"r{rank}" / f"rank{rank}.json")
    name = "inductor_provenance_tracking_node_mappings.json"
    of_one = written(tmp_path / "r1" / "torch_compile_debug" / "model", {}, name)
    of_all = written(tmp_path, {})
    found = {file.rank: set(file.kernel_files) for file in discover(str(tmp_path))}
    assert found == {0: {str(of_all)}, 1: {str(of_all), str(of_one)}}


def test_names_of_tlparse_and_of_captures_are_recognized() -> None:
    """File names of tlparse and of captures are recognized, but similar names are not."""
    for name in (
        *(INFORMATION, "rank0_kernel_information.json", "kernel_information.json.gz"),
        "inductor_provenance_tracking_kernel_stack_traces_14.json",
    ):
        assert KERNEL_INFORMATION_NAME.search(name), name
    for name in ("my_kernel_informations.json", "kernel_information.txt", "rank0.json"):
        assert not KERNEL_INFORMATION_NAME.search(name), name


def test_a_changed_file_is_ingested_again_and_the_message_names_the_kernels(tmp_path: Path) -> None:
    """A changed file is ingested again, and the message states how many kernels it describes."""
    folder = tmp_path / "job"
    shutil.copytree(JOB, folder)
    for kernels, results in ((3, 1), (3, 0), (1, 1)):
        if kernels == 1:
            written(folder, {"triton_0:1": ["a"]})
        with hta_sql.ingest(folder, tmp_path / "job.store", run="job") as store:
            assert store.ingested
            assert len(store.ingested.results) == results
            assert store.sql("SELECT count(*) FROM compiled_kernels").rows() == [(kernels,)]
            if results:
                said = summary(store.ingested, 1, "")
                word = "kernel" if kernels == 1 else "kernels"
                assert f"kernel information of {kernels} compiled {word}" in said


def test_redaction_keeps_lines_and_no_text_of_the_user(tmp_path: Path) -> None:
    """Redaction hashes files and functions and removes source text, but keeps methods and lines."""
    with hta_sql.ingest(JOB, tmp_path / "job.store") as store:
        before = sources(store)
    redact_store(store_folder(tmp_path / "job.store"), tmp_path / "given", Redactor("key"))
    with hta_sql.open(tmp_path / "given") as store:
        after = [[row[name] for name in SOURCES] for row in store.run("kernel_table").records()]
        texts = json.dumps(
            [
                store.sql("FROM query_table($t)", {"t": table}).rows()
                for table in ("compiled_kernels", "gpu_ops")
            ],
            default=str,
        )
    assert [row[-1] for row in after] == [row[-1] for row in before.values()]
    assert [row[2] for row in after] == [row[1] for row in before.values()]
    for private in ("model.py", "/home/me", "3.14", "F.relu"):
        assert private not in texts
