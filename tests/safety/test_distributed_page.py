"""The recipes in docs/distributed.md work if their paths and job counts are replaced."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql

if TYPE_CHECKING:
    from tests.safety.conftest import BusyTimes, WriteTraces

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "distributed.md").read_text(encoding="utf-8")
DURATIONS = {rank: 100.0 + rank for rank in range(5)}
JOBS = 3


def blocks(heading: str, language: str) -> list[str]:
    """Return the code blocks in a given language below a heading."""
    part = re.split(r"^##+ ", PAGE.split(f" {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(rf"```{language}\n(.*?)```", part, re.DOTALL)


class Shell:
    """Runs the code blocks of the page."""

    def __init__(self, folder: Path, tools: Path) -> None:
        self.folder = folder
        self._path = os.pathsep.join([str(tools), os.environ.get("PATH", "")])
        self._python_path = os.pathsep.join([str(REPOSITORY), *sys.path])

    def here(self, text: str) -> str:
        """Replace the page's folder and job count with the test's."""
        placed = re.sub(r"s3://bucket|/shared", str(self.folder), text)
        return re.sub(r"\b16\b", str(JOBS), placed)

    def run(self, text: str, **variables: str | int) -> str:
        """Run a script, and return its stderr."""
        environment = {name: str(value) for name, value in variables.items()}
        done = subprocess.run(  # noqa: S603 - our own page
            ["bash", "-c", self.here(text)],  # noqa: S607 - any bash will do
            env={**os.environ, "PATH": self._path, "PYTHONPATH": self._python_path, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr


@pytest.fixture
def shell(tmp_path: Path, write_traces: WriteTraces) -> Shell:
    """Return a shell whose ``srun`` runs commands locally and whose ``hta-sql`` is this package."""
    write_traces(DURATIONS)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (
        ("srun", '#!/bin/sh\nexec "$@"\n'),
        ("hta-sql", f'#!/bin/sh\nexec "{sys.executable}" -m hta_sql "$@"\n'),
    ):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    return Shell(tmp_path, tools)


@pytest.mark.slow(reason="processes")
def test_slurm(shell: Shell, busy_times: BusyTimes) -> None:
    """The Slurm recipe works if the array jobs run in any order before the dependent job."""
    ingest, publish = blocks("Slurm", "bash")
    for task in range(JOBS, 0, -1):
        shell.run(ingest, SLURM_ARRAY_TASK_ID=task, SLURM_ARRAY_TASK_COUNT=JOBS)
    shell.run(publish)
    assert busy_times(shell.folder / "job.store") == DURATIONS


@pytest.mark.slow(reason="processes")
def test_an_array_in_python(shell: Shell, busy_times: BusyTimes) -> None:
    """The two Python calls on the page ingest and publish the shards of an array."""
    ingest, publish = blocks("An array of jobs", "python")
    for number in range(1, JOBS + 1):
        exec(compile(shell.here(ingest), "distributed.md", "exec"), globals() | {"number": number})  # noqa: S102
    exec(compile(shell.here(publish), "distributed.md", "exec"))  # noqa: S102 - our own page
    assert busy_times(shell.folder / "job.store") == DURATIONS


@pytest.mark.slow(reason="processes")
def test_slurm_without_a_job(shell: Shell) -> None:
    """If array jobs have not run, publishing fails with the number of missing shards."""
    ingest, publish = blocks("Slurm", "bash")
    shell.run(ingest, SLURM_ARRAY_TASK_ID=1, SLURM_ARRAY_TASK_COUNT=JOBS)
    with pytest.raises(AssertionError, match="2 of 3 shards are missing"):
        shell.run(publish)


@pytest.mark.slow(reason="processes")
def test_kubernetes(shell: Shell, busy_times: BusyTimes) -> None:
    """The Kubernetes recipe works if its command runs for each job index, starting at 0."""
    yaml = pytest.importorskip("yaml")
    (text,) = blocks("Kubernetes", "yaml")
    job = yaml.safe_load(text)
    assert job["spec"]["completionMode"] == "Indexed"
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["sh", "-c"]
    (command,) = container["args"]
    for index in range(JOBS):
        shell.run(command, JOB_COMPLETION_INDEX=index)
    (publish,) = re.findall(r"runs `(hta-sql publish [^`]*)`", PAGE)
    shell.run(publish)
    assert busy_times(shell.folder / "job.store") == DURATIONS


@pytest.mark.slow(reason="processes")
@pytest.mark.filterwarnings("ignore")
def test_dask_jobqueue(
    shell: Shell, busy_times: BusyTimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Dask recipe runs on a local cluster in place of a Slurm cluster."""
    distributed = pytest.importorskip("distributed")

    class SLURMCluster(distributed.LocalCluster):  # type: ignore[misc, name-defined]
        def __init__(self, *, cores: int, processes: int, memory: str) -> None:
            assert (cores, processes, memory) == (1, 1, "8GB")
            super().__init__(n_workers=0, threads_per_worker=1, dashboard_address=None)

        def scale(self, number: int) -> None:
            super().scale(min(number, 2))

    module = types.ModuleType("dask_jobqueue")
    module.SLURMCluster = SLURMCluster  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dask_jobqueue", module)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(REPOSITORY), *sys.path]))
    (block,) = blocks("Dask", "python")
    exec(compile(shell.here(block), "distributed.md", "exec"), {})  # noqa: S102 - our own page
    assert busy_times(shell.folder / "job.store") == DURATIONS


@pytest.fixture
def ray_cluster() -> Iterator[Any]:
    """Start Ray with two workers on this machine."""
    ray = pytest.importorskip("ray")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])}},
    )
    yield ray
    ray.shutdown()


@pytest.mark.slow(reason="processes")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("ray_cluster")
def test_ray(shell: Shell, busy_times: BusyTimes) -> None:
    """The Ray executor on the page ingests traces."""
    (block,) = blocks("Ray", "python")
    (call,) = re.findall(r"`(hta_sql\.ingest\(.*?RayExecutor\(\)\))`", PAGE)
    names: dict[str, Any] = {"hta_sql": hta_sql}
    exec(compile(block, "distributed.md", "exec"), names)  # noqa: S102 - our own page
    exec(compile(shell.here(f"{call}.close()"), "distributed.md", "exec"), names)  # noqa: S102
    assert busy_times(shell.folder / "job.store") == DURATIONS
