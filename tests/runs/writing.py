"""Helpers that write traces with properties of their run, run commands, and list runs."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

import hta_sql
from hta_sql.cli import program

KERNEL = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 0.0, "dur": 100.0}
KERNEL |= {"args": {"device": 0, "stream": 7}}
STATED = {
    "distributedInfo": {"rank": 0, "world_size": 8, "backend": "nccl", "nccl_version": "2.28.9"},
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
    "host_name": "node17",
    "torch_version": "2.9.1",
    "git_sha": "8c1f0e",
    "baseTimeNanoseconds": 1_769_904_000_000_000_000,
}


def write_trace(path: Path, **keys: object) -> str:
    """Write a trace with one kernel and the given properties; return its path."""
    path.write_text(json.dumps({"traceEvents": [KERNEL], **keys}))
    return str(path)


def called(*arguments: object) -> str:
    """Run a command that must succeed; return its output."""
    done = CliRunner().invoke(program, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def runs_of(store: Path) -> list[str]:
    """Return the runs that can be queried in a store."""
    with hta_sql.open(store) as opened:
        return [run for (run,) in opened.sql("SELECT run FROM gpu_ops ORDER BY run").rows()]


def files_of(store: Path) -> set[str]:
    """Return the paths of all table files and their folders."""
    return {path.relative_to(store).as_posix() for path in (store / "tables").rglob("*")}
