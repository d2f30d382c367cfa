"""Kernels of CUDA graphs are linked to the Python stacks of their capture.

The stacks come from a file that ``torch.cuda.graph_annotations.dump_kernel_py_stacks`` writes.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import hta_sql
from hta_sql.cli import main
from hta_sql.traces.side_files import text_of
from tests.shared_stores import made_once

TRACE = Path(__file__).parents[1] / "traces" / "graph_replays.json"
NODE = (3 << 32) | 1


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest two replays of a graph that has two nodes."""
    return made_once(
        tmp_path_factory,
        "graph_stacks",
        lambda path: hta_sql.ingest({0: str(TRACE)}, path, run="job").close(),
    )


@pytest.fixture
def stacks(tmp_path: Path) -> Path:
    """Write a gzipped stacks file in the format of PyTorch."""
    path = tmp_path / "stacks.json.gz"
    said = {str(NODE): "model.py:20:forward\ntrain.py:5:<module>"}
    path.write_bytes(gzip.compress(json.dumps(said).encode()))
    return path


def test_a_file_is_named_behind_an_at(
    store: Path, stacks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--launch-stacks @FILE`` reads the value of the option from a file."""
    option = ["--launch-stacks", f"@{stacks}"]
    assert main(["run", str(store), "graph_kernels", *option, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["frame"], row["run_count"]) for row in rows] == [
        ("gemm", "model.py(20): forward", 2),
        ("relu", None, 2),
    ]


def test_in_python(store: Path, stacks: Path) -> None:
    """In Python, the content of the stacks file is passed as a string."""
    with hta_sql.open(store) as opened:
        (first, _) = opened.run("graph_kernels", launch_stacks=text_of(stacks)).records()
    assert json.loads(first["stack"]) == ["model.py(20): forward", "train.py(5): <module>"]


@pytest.mark.parametrize("content", [b"{", b'{"graph": "a.py:1:f"}', b"[1, 2]", b"\xff\xfe"])
def test_another_file_is_an_error(
    store: Path, tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stacks file in a different format is an error without a traceback."""
    path = tmp_path / "other.json"
    path.write_bytes(content)
    assert main(["run", str(store), "graph_kernels", "--launch-stacks", f"@{path}"]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_no_such_file(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error for a missing stacks file names the file."""
    path = tmp_path / "nothing.json"
    assert main(["run", str(store), "graph_kernels", "--launch-stacks", f"@{path}"]) == 1
    assert "nothing.json" in capsys.readouterr().err
