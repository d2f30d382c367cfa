"""Exceeding a system limit on threads, memory or files causes an error that names the limit."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from hta_sql.exhausted import LEAST_ADDRESS_SPACE, disk_refusal, reason_of, tight_address_space
from tests.shared_stores import ingest_only

resource = pytest.importorskip("resource")

UNPRIVILEGED = (
    *("setpriv", "--reuid=54321", "--clear-groups"),
    *("--inh-caps=+dac_override", "--ambient-caps=+dac_override"),
)
"""Command prefix that drops privileges, because root has no process limit."""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write and ingest traces of two ranks in a folder that any user may write to."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "traces").mkdir()
    for rank in range(2):
        place = {"pid": 1, "tid": 1, "dur": 5}
        events = [
            {"ph": "X", "cat": "cpu_op", "name": f"op{n}", "ts": 10 * n, **place}
            for n in range(5_000)
        ]
        info = {"rank": rank, "world_size": 2}
        trace = {"distributedInfo": info, "traceEvents": events}
        (folder / "traces" / f"rank{rank}.json").write_text(json.dumps(trace), encoding="utf-8")
    ingest_only(folder / "traces", folder / "job.store")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777)
    return folder


COMMANDS = {
    "ingest": ("ingest", "traces", "-o", "new.store", "--jobs", "1"),
    "ingest in processes": ("ingest", "traces", "-o", "new.store", "--jobs", "2"),
    "run": ("run", "job.store", "ops_by_name", "--limit", "0", "-o", "out.csv"),
    "sql": ("sql", "job.store", "FROM cpu_ops", "-o", "out.csv"),
    "export": ("export", "job.store", "cpu_ops", "-o", "out.xlsx"),
    "redacted": ("export", "job.store", "-o", "out", "--redact", "--format", "trace"),
    "report": ("report", "job.store", "-o", "out.html"),
}


def limited(
    folder: Path, limit: str, command: tuple[str, ...], user: tuple[str, ...] = ()
) -> list[str]:
    """Run a command under a shell limit, expect exit code 1, and return the lines of stderr."""
    script = f'ulimit {limit}; exec "$@"'
    program = ("bash", "-c", script, "bash", sys.executable, "-m", "hta_sql", *command)
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    temporary.chmod(0o777)
    places = {"HOME": str(temporary), "TMPDIR": str(temporary)}
    done = subprocess.run(  # noqa: S603 - this interpreter, words of this file
        [*user, *program],
        cwd=folder,
        env={**os.environ, **places, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    return done.stderr.splitlines()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_limit_of_file_sizes_is_named(job: Path, name: str) -> None:
    """The error names the file size limit and how to raise it, and no partial file is left."""
    before = sorted(path.name for path in job.iterdir() if path.name != "tmp")
    lines = limited(job, "-f 16", COMMANDS[name])
    assert lines[-1].startswith("error: ")
    assert "File size limit of 16.384 kB (ulimit -f)" in lines[-1]
    assert "Raise the limit: ulimit -f unlimited" in lines[-1]
    assert "Traceback" not in "".join(lines)
    after = {path.name for path in job.iterdir()} - {"tmp", "new.store"}
    assert sorted(after) == before
    shutil.rmtree(job / "new.store", ignore_errors=True)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ["ingest", "run", "sql", "report"])
def test_a_limit_of_threads_is_named(job: Path, name: str, threads: int) -> None:
    """The error names the thread limit of the user."""
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("only root with setpriv can try it")
    lines = limited(job, f"-u {threads}", COMMANDS[name], UNPRIVILEGED)
    assert f"threads of this user: {threads}, ulimit -u" in lines[-1], lines
    assert lines[-1].startswith("error: The system refused a new thread or process")
    assert "Traceback" not in "".join(lines)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), "a.csv"), "Disk quota exceeded: 'a.csv'"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a.csv"), "No space left on device"),
        (OSError(errno.EFBIG, os.strerror(errno.EFBIG)), "too large for the file system"),
        (duckdb.IOException(f"IO Error: {os.strerror(errno.EDQUOT)}"), "Disk quota exceeded"),
        (RuntimeError("can't start new thread"), "refused a new thread"),
        (BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)), "refused a new thread"),
        (MemoryError(), "refused to allocate more memory"),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "refused to allocate more memory"),
        (
            ImportError("lib.so: failed to map segment from shared object"),
            "refused to allocate more memory",
        ),
        (
            duckdb.TransactionException(
                "Failed to commit: Failed to allocate block (bad allocation)"
            ),
            "refused to allocate more memory",
        ),
    ],
)
def test_what_the_system_refuses_is_explained(error: Exception, words: str) -> None:
    """The error names the resource that the system refused and suggests a remedy."""
    reason = reason_of(error)
    assert reason is not None
    assert words in reason
    assert reason.count(". ") >= 1


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("other"),
        OSError(errno.EACCES, "Permission denied"),
        ImportError("no module"),
        duckdb.OutOfMemoryException("failed to allocate data of size 1 (2/2 used)"),
    ],
)
def test_other_errors_are_no_limits(error: Exception) -> None:
    """Errors unrelated to system limits get no such explanation."""
    assert reason_of(error) is None
    assert disk_refusal(error) is None


def test_a_pool_that_fails_to_start_is_a_refused_thread() -> None:
    """A thread that cannot be started is recognized even if Python raises a later error."""
    first, second = RuntimeError("can't start new thread"), RuntimeError("cannot join thread")
    second.__context__ = first
    assert "refused a new thread" in str(reason_of(second))


def test_little_address_space_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small address space limit causes a warning, because libraries may abort."""
    limits = {resource.RLIMIT_AS: 10**9}
    real = resource.getrlimit
    monkeypatch.setattr(
        resource, "getrlimit", lambda which: (limits.get(which) or real(which)[0], real(which)[1])
    )
    assert "is limited to 1.000 GB (ulimit -v)" in str(tight_address_space())
    assert "memory of this process: 1.000 GB, ulimit -v" in str(reason_of(MemoryError()))
    limits[resource.RLIMIT_AS] = LEAST_ADDRESS_SPACE
    assert tight_address_space() is None
