"""The handler of ``torch.profiler.profile`` records into a store without stopping the training."""

from __future__ import annotations

import gzip
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql.errors import ParameterError
from hta_sql.torch import children, handler, trace_handler
from tests.safety.conftest import busy_times_of, trace_of

if TYPE_CHECKING:
    from tests.safety.conftest import BusyTimes

Started = list[list[str]]

TRAINING = """
import json, sys
from hta_sql.torch import trace_handler

class Profile:
    def export_chrome_trace(self, path):
        with open(path, "w") as file:
            file.write(sys.argv[2])

trace_handler(sys.argv[1], **json.loads(sys.argv[3]))(Profile())
if len(sys.argv) > 4:
    raise RuntimeError(sys.argv[4])
"""
"""A process that records and ends: store, trace, options of the handler, and an error to raise."""


@dataclass
class Profile:
    """Writes a given recording, as ``torch.profiler.profile`` does."""

    duration: float = 7.0

    def export_chrome_trace(self, path: str) -> None:
        """Write the recording."""
        text = json.dumps(trace_of(0, self.duration)).encode()
        Path(path).write_bytes(gzip.compress(text) if path.endswith(".gz") else text)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the environment of a job."""
    for name in ("RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Collect the arguments of ingests instead of starting them."""
    found: Started = []
    monkeypatch.setattr(handler, "start_ingest", lambda arguments: found.append(list(arguments)))
    return found


def train(store: Path, *error: str, options: dict[str, object] | None = None, **env: str) -> str:
    """Record in a process of its own; return its stderr."""
    trace = json.dumps(trace_of(int(env.get("RANK", "0")), 7.0))
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", TRAINING, str(store), trace, json.dumps(options or {}), *error],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | env,
    )
    assert done.returncode == bool(error), done.stderr
    return done.stderr


def test_recordings_become_captures_of_a_run(tmp_path: Path) -> None:
    """Each call ingests one capture, in a process of its own; the traces are in the store."""
    store = tmp_path / "job.store"
    ready = trace_handler(store, run="job")
    for duration in (7.0, 8.0):
        ready(Profile(duration))
    trace_handler(store, run="job")(Profile(9.0))  # a later profile of the same process
    children.wait()
    with hta_sql.open(store) as opened:
        assert opened.runs() == ["job", "job-capture2", "job-capture3"]
        sources = opened.table("ranks").arrow().to_pylist()
    assert all(Path(row["source"]).exists() for row in sources)
    assert len(list(store.glob("traces/job*/*.pt.trace.json"))) == 3


def test_a_process_that_ends_waits_for_its_trace(tmp_path: Path, busy_times: BusyTimes) -> None:
    """When the process has ended, the store is complete, even if the training failed."""
    said = train(tmp_path / "job.store", "out of memory", options={"keep_trace": False})
    assert "RuntimeError: out of memory" in said
    assert "Published run " in said
    assert busy_times(tmp_path / "job.store") == {0: 7.0}
    assert not list((tmp_path / "job.store").glob("traces/*/*"))


def test_files_of_the_training_do_not_break_the_ingest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy_times: BusyTimes
) -> None:
    """A module in the working directory does not replace one that the ingest imports."""
    (tmp_path / "click.py").write_text("raise ImportError('a file of the training')")
    monkeypatch.chdir(tmp_path)
    train(tmp_path / "job.store")
    assert busy_times(tmp_path / "job.store") == {0: 7.0}


def test_ranks_of_a_job_become_one_run(tmp_path: Path, busy_times: BusyTimes) -> None:
    """Processes that only share the environment of torchrun publish one run together."""
    store = tmp_path / "job.store"
    env = {"WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "exp 7"}
    trace = json.dumps(trace_of(0, 7.0))
    command = [sys.executable, "-c", TRAINING, str(store), trace, "{}"]
    jobs = [
        subprocess.Popen(command, env=os.environ | env | {"RANK": str(rank)})  # noqa: S603 - our own code
        for rank in range(2)
    ]
    assert [job.wait() for job in jobs] == [0, 0]
    assert busy_times(store) == {0: 7.0, 1: 7.0}
    with hta_sql.open(store) as opened:
        assert opened.runs() == ["exp_7"]
    assert sorted(path.name[:6] for path in store.glob("traces/*/*")) == ["rank0_", "rank1_"]


@pytest.mark.slow(reason="processes")
def test_ranks_on_several_machines_share_object_storage(s3: str, tmp_path: Path) -> None:
    """Two ranks without a common folder publish one run, and their traces are in the bucket."""
    store = f"{s3}/job.store"
    trace = json.dumps(trace_of(0, 7.0))
    jobs = []
    for rank in range(2):
        (tmp_path / str(rank)).mkdir()
        env = {"WORLD_SIZE": "2", "RANK": str(rank), "TMPDIR": str(tmp_path / str(rank))}
        command = [sys.executable, "-c", TRAINING, store, trace, json.dumps({"run": "job"})]
        jobs.append(subprocess.Popen(command, env=os.environ | env))  # noqa: S603 - our own code
    assert [job.wait() for job in jobs] == [0, 0]
    with hta_sql.open(store) as opened:
        assert busy_times_of(opened) == {0: 7.0, 1: 7.0}
        sources = [row["source"] for row in opened.table("ranks").arrow().to_pylist()]
    assert all(source.startswith(f"{store}/traces/job/rank") for source in sources)
    assert not list(tmp_path.glob("*/hta_sql_traces_*"))


def test_the_options_reach_the_ingest(tmp_path: Path, started: Started) -> None:
    """Worker name and gzip name the trace; the other options are those of the command."""
    store = tmp_path / "job.store"
    ready = trace_handler(
        store, "trainer", True, run="job", keep_trace=False, role="actor", advise=True
    )
    ready(Profile())
    ((command, trace, *options),) = started
    assert command == "ingest-rank"
    assert Path(trace).parent == store / "traces" / "job"
    assert Path(trace).name.startswith("trainer.")
    assert trace.endswith(".pt.trace.json.gz")
    assert options == [
        *("-o", str(store), "--run", "job", "--rank", "0", "--world-size", "1"),
        *("--afterwards", "delete", "--role", "actor", "--advice"),
    ]


def test_a_store_at_a_url_gets_the_trace_by_its_ingest(started: Started) -> None:
    """A trace is exported to a temporary folder if the store is not a folder of this machine."""
    trace_handler("s3://bucket/job.store", run="job")(Profile())
    ((_, trace, *options),) = started
    assert options[:2] == ["-o", "s3://bucket/job.store"]
    assert options[-2:] == ["--afterwards", "move"]
    Path(trace).unlink()


def test_a_relative_store_stays_where_it_was(
    tmp_path: Path, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training that changes its working directory does not change the store."""
    monkeypatch.chdir(tmp_path)
    ready = trace_handler("job.store", run="job")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ready(Profile())
    assert started[0][3] == str(tmp_path / "job.store")


def test_an_unwritable_store_is_a_warning(
    tmp_path: Path, started: Started, caplog: pytest.LogCaptureFixture
) -> None:
    """The trace is exported elsewhere, and the warning has the command that ingests it."""
    (tmp_path / "file").touch()
    store = tmp_path / "file" / "job.store"
    trace_handler(store, run="job")(Profile())
    assert started == []
    (record,) = caplog.records
    said = record.getMessage()
    assert f"The store {store} is not writable" in said
    command = said.partition("run: ")[2].split()
    assert command[:2] == ["hta-sql", "ingest-rank"]
    assert json.loads(Path(command[2]).read_text())["traceEvents"]
    assert command[3:5] == ["-o", str(store)]
    Path(command[2]).unlink()


@pytest.mark.parametrize("error", [RuntimeError("no trace"), OSError("disk full")])
def test_a_failed_export_does_not_stop_the_training(
    tmp_path: Path, started: Started, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """An error of the profiler is a warning."""

    class Broken:
        def export_chrome_trace(self, _: str) -> None:
            raise error

    trace_handler(tmp_path / "job.store", run="job")(Broken())
    assert started == []
    assert f"was not recorded into {tmp_path / 'job.store'}" in caplog.text
    assert str(error) in caplog.text


def _program(folder: Path, script: str) -> str:
    """Write a program that stands in for Python, and return its path."""
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return str(path)


def test_a_failed_ingest_is_a_warning_with_its_command(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code and the command to repeat are reported when the process has ended."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    trace_handler(tmp_path / "job.store", run="job")(Profile())
    children.wait()
    assert "failed with exit code 1. Run it again: hta-sql ingest-rank " in caplog.text
    caplog.clear()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    trace_handler(tmp_path / "job.store", run="job")(Profile())
    assert "was not started" in caplog.text
    assert "Run: hta-sql ingest-rank " in caplog.text


def test_an_ingest_that_failed_earlier_is_reported_with_the_next_recording(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long training does not hide failures until it ends."""
    monkeypatch.setattr(sys, "executable", _program(tmp_path, "sleep 1; exit 3"))
    ready = trace_handler(tmp_path / "job.store", run="job")
    ready(Profile())
    assert caplog.text == ""
    time.sleep(2)
    ready(Profile())
    assert "failed with exit code 3" in caplog.text
    children.wait()


def test_waiting_at_exit_is_announced_and_can_be_interrupted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow ingest does not hang the exit silently."""
    monkeypatch.setattr(sys, "executable", _program(tmp_path, "sleep 2"))
    monkeypatch.setattr(children, "SILENT_S", 0.1)
    trace_handler(tmp_path / "job.store", run="job")(Profile())
    children.wait()
    assert "Waiting until the recorded traces are ingested" in caplog.text

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    trace_handler(tmp_path / "job.store", run="job")(Profile())
    with monkeypatch.context() as patched:
        patched.setattr(subprocess.Popen, "wait", interrupted)
        children.wait()
    assert "Not waiting" in caplog.text
    children.wait()


def test_a_wrong_run_name_is_an_error_at_once(tmp_path: Path) -> None:
    """A run name that is not valid fails before the training, not after it."""
    with pytest.raises(ParameterError, match="Run name"):
        trace_handler(tmp_path / "job.store", run="../job")


def test_importing_the_handler_imports_nothing_slow() -> None:
    """The training process imports neither an engine nor torch, which it has or has not itself."""
    code = (
        "import sys, hta_sql; hta_sql.torch.trace_handler('job.store'); "
        "slow = {'torch', 'duckdb', 'pandas', 'numpy', 'pyarrow', 'fsspec', 'click'}; "
        "sys.exit(repr(slow & set(sys.modules)) if slow & set(sys.modules) else 0)"
    )
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_handler_has_the_arguments_of_torch() -> None:
    """The first arguments are those of ``tensorboard_trace_handler(dir_name, worker_name, use_gzip)``."""
    import inspect  # noqa: PLC0415

    parameters = list(inspect.signature(trace_handler).parameters.values())
    assert [(p.name, p.default) for p in parameters[1:3]] == [
        ("worker_name", None),
        ("use_gzip", False),
    ]
    assert parameters[0].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


def test_failures_of_the_handler_are_logged_as_warnings(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails in the handler is at most a warning."""

    def broken(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(handler, "current_job", broken)
    call: Callable[[Profile], None] = trace_handler(tmp_path / "job.store")
    call(Profile())
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
