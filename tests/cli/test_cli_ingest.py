"""Tests of ``hta-sql ingest``: output, options and errors."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from hta_sql.cli.messages import rank_progress

if TYPE_CHECKING:
    from hta_sql.ingestion.rank_job import RankResult
    from tests.cli.conftest import Cli


def test_ingest_puts_the_store_into_the_folder(cli: Cli, traces: Path, tmp_path: Path) -> None:
    """Without ``-o``, the store is created in the trace folder, which then works as a store."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for file in traces.glob("*.json"):
        (folder / file.name).write_bytes(file.read_bytes())
    first = cli("ingest", folder)
    assert (first.code, first.out) == (0, "")
    assert "[2/2] mine rank 1: 3 events" in first.err
    assert "Read 2 ranks, 6 events in" in first.err
    store = folder / ".hta_sql"
    assert f"Next: hta-sql advice {store}, hta-sql report {store} -o report.html" in first.err
    assert first.err.endswith(f", or hta-sql run {store} temporal_breakdown\n")
    assert "2 ranks unchanged" in cli("ingest", folder).err
    assert "Read 2 ranks" in cli("ingest", folder, "--force", "-v").err
    assert "mine,0," in cli("run", folder, "temporal_breakdown", "--format", "csv").out


def test_ingest_takes_ranks_and_a_run_name(cli: Cli, traces: Path, tmp_path: Path) -> None:
    """``--ranks`` selects ranks, and ``--run`` sets the run name."""
    out = tmp_path / "a.store"
    done = cli("ingest", traces, "-o", out, "--ranks", "1", "--run", "named", "--jobs", "1")
    assert "Read 1 rank, 3 events" in done.err
    assert "named  ranks 1; 0 profiler steps; 3 events" in cli("list", out).out


def test_ingest_says_what_it_put_into_quarantine_and_what_it_skipped(
    cli: Cli, traces: Path, tmp_path: Path
) -> None:
    """The output counts quarantined events and warns about skipped files."""
    text = (traces / "rank0.json").read_bytes()
    (tmp_path / "rank0.json").write_bytes(text.replace(b'"name": "gemm"', b'"name": "ge\xffmm",,'))
    (tmp_path / "notes.json").write_text("{}")
    done = cli("ingest", tmp_path, "-o", tmp_path / "x.store")
    assert done.code == 0
    assert "quarantined (table quarantine)" in done.err
    assert "warning: Skipped: " in done.err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing", None, ["No such file or folder", "missing"]),
        ("empty", "", ["No traces in", "*.json"]),
        ("text.json", "hello", ["text.json", "is not JSON"]),
        ("other.json", '{"a": 1}', ["other.json", "no traceEvents list"]),
    ],
)
def test_ingest_of_what_is_no_trace(
    cli: Cli, tmp_path: Path, name: str, content: str | None, words: list[str]
) -> None:
    """The error for a file that is not a trace names the file and the problem."""
    path = tmp_path / name
    if content:
        path.write_text(content)
    elif content == "":
        path.mkdir()
    cli("ingest", path, "-o", tmp_path / "x.store").fails(1, *words)


def test_ingest_usage(cli: Cli, traces: Path, tmp_path: Path) -> None:
    """Invalid arguments are reported with the option and a valid example."""
    out = tmp_path / "x.store"
    one = traces / "rank0.json"
    cli("ingest").fails(2, "TRACES", "hta-sql ingest --help")
    cli("ingest", one).fails(2, "-o STORE")
    cli("ingest", tmp_path / "missing").fails(2, "No such file or folder")
    cli("ingest", traces, "-o", out, "--ranks", "0,x").fails(2, "--ranks", "0,1-3")
    cli("ingest", traces, "-o", out, "--ranks", "3-1").fails(2, "ascending range")
    cli("ingest", traces, "-o", out, "--jobs", "0").fails(2, "--jobs")
    cli("ingest", traces, "-o", out, "--memory-limit", "lots").fails(2, "512MiB")
    cli("ingest", traces, "-o", out, "--kernel-classes", "no.csv").fails(2, "no.csv")
    cli("ingest", traces, "-o", out, "--ranks", "7").fails(
        1, "No trace was found for rank 7", "0-1"
    )
    cli("ingest", traces, "-o", out, "--run", "a/b").fails(1, "Run name 'a/b'")
    cli("ingest", traces, "-o", out, "--rank-regex", "(").fails(1, "regular expression")
    cli("ingest", traces, "-o", one / "sub").fails(1, "Not a directory")


def test_what_one_process_wrote_is_one_rank(cli: Cli, tmp_path: Path) -> None:
    """Traces named ``host_pid.time`` by PyTorch's trace handler are assigned to ranks by process.

    Two files of one process are two captures, while two processes are two ranks.
    """
    folder = tmp_path / "job"
    folder.mkdir()
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "dur": 5}
    for name, ts in {"vm_7.1795260889304944636": 1, "vm_7.1795260889533904118": 9}.items():
        text = json.dumps({"schemaVersion": 1, "traceEvents": [event | {"ts": ts}]})
        (folder / f"{name}.pt.trace.json").write_text(text)
    done = cli("ingest", folder)
    assert done.code == 0
    assert "does not specify its rank" not in done.err
    assert "Read 2 traces, 2 events" in done.err
    assert "(runs job, job-capture2)" in done.err
    store = folder / ".hta_sql"
    assert done.err.endswith(f", or hta-sql run {store} host_accounting\n")
    (folder / "vm_8.1795260889304944636.pt.trace.json").write_text(text)
    assert cli("ingest", folder).code == 0
    listed = cli("sql", folder, "SELECT run, rank FROM ranks ORDER BY ALL", "--format", "csv")
    assert listed.out == "run,rank\njob,0\njob,1\njob-capture2,0\n"


class Terminal(io.StringIO):
    """Stream that records what a command prints on a terminal."""

    def isatty(self) -> bool:
        """Return True, as a terminal does."""
        return True


def test_the_bar_counts_when_there_is_something_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The progress bar shows no counts until the rank count is known."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with rank_progress() as progress:
        time.sleep(0.3)
        waiting = screen.getvalue()
        progress(cast("RankResult", SimpleNamespace(event_count=7)), 1, 2)
        time.sleep(0.3)
    assert "Reading traces" in waiting
    assert "None" not in waiting
    assert re.search(r"1/2 ranks, \d+ events/s", screen.getvalue())
    assert "left:" in screen.getvalue()
