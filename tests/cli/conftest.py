"""Fixtures that run commands on the traces of two small ranks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hta_sql.cli import main
from tests.shared_stores import ingest_only

HOSTILE = "evil\x1b[31m\nkernel\u202e"


@dataclass(frozen=True)
class Outcome:
    """Exit code, stdout and stderr of a command."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        """Decoded stdout."""
        return self.raw.decode()

    def fails(self, code: int, *words: str) -> None:
        """Assert that the command failed with a code and a one-line error with these words."""
        assert self.code == code
        assert self.out == ""
        lines = [line for line in self.err.splitlines() if not line.startswith("warning: ")]
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: ")
        for word in words:
            assert word in lines[0]
        assert "Traceback" not in self.err


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """Return a function that runs a command in-process: ``cli("list", "--format", "csv")``."""

    def call(*args: str | Path) -> Outcome:
        capsysbinary.readouterr()
        code = main([str(arg) for arg in args])
        captured = capsysbinary.readouterr()
        return Outcome(code, captured.out, captured.err.decode())

    return call


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two ranks with three kernels each, of which one has a hostile name."""
    folder = tmp_path_factory.mktemp("job")
    for rank in range(2):
        events = [
            {
                "ph": "X",
                "cat": "kernel",
                "name": name,
                "pid": 0,
                "tid": 7,
                "ts": 100.0 * number,
                "dur": 10.5 * (number + 1),
                "args": {"device": 0, "stream": 7},
            }
            for number, name in enumerate(("gemm", "ncclDevKernel_AllReduce", HOSTILE))
        ]
        info = {"backend": "nccl", "rank": rank, "world_size": 2}
        trace = {"schemaVersion": 1, "distributedInfo": info, "traceEvents": events}
        (folder / f"rank{rank}.json").write_text(json.dumps(trace))
    return folder


@pytest.fixture(scope="module")
def store(traces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest the traces as the run ``job``."""
    path = tmp_path_factory.mktemp("store") / "job.store"
    ingest_only(traces, path, run="job")
    return path


@pytest.fixture(scope="session")
def hostile() -> str:
    """Return the hostile kernel name, which has control characters for color and text direction."""
    return HOSTILE
