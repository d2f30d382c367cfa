"""No command lets names in a trace control the terminal, in any format.

Output goes to a pseudo-terminal, and each name in the trace has all kinds of control characters.
Files and pipes receive unchanged names.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hta_sql
from hta_sql.cli import main
from hta_sql.cli.terminal import escaped, wrapped
from hta_sql.results.writers import WRITERS
from tests.cli.conftest import Cli
from tests.golden_cases import TESTS
from tests.shared_stores import ingest_only
from tests.terminals import acting, terminal

EVIL = (
    *("\x1b[66;6m", "\x1b]0;title\x07", "\x1b[2J", "\r", "\b", "\x00", "\x7f"),  # C0 and DEL
    *("\x9b66m", "\x9d0;title\x9c", "\x85", "\x80"),  # C1
    *("\u202a", "\u202e", "\u2066", "\u2069", "\u200e", "\u200f", "\u061c"),  # text direction
    *("\u200b", "\u200d", "\ufeff", "\u2028", "\xad", "\U000e0041"),  # invisible
)
HOSTILE = "\u2009".join(EVIL)
SQL = "SELECT name, list_value(name) AS names, {'key': name} AS pair FROM gpu_ops ORDER BY ALL"
FORMATS = ("table", "csv", "json", "markdown")
PRINTED = ("csv", "json")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two ranks with hostile event names, in files with hostile names."""
    folder = tmp_path_factory.mktemp("terminal") / "traces"
    folder.mkdir()
    for rank in (0, 1):
        trace = json.loads((TESTS / "traces" / f"waits_{rank}.json").read_text(encoding="utf-8"))
        for event in trace["traceEvents"]:
            if not event["name"].startswith(("ProfilerStep", "process_", "thread_")):
                event["name"] += HOSTILE
            elif "name" in event.get("args", {}):
                event["args"]["name"] += HOSTILE
        name = f"rank{rank}{HOSTILE}.json".replace("\x00", "")
        (folder / name).write_text(json.dumps(trace), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def store(traces: Path) -> Path:
    """Ingest the traces with hostile names."""
    path = traces.parent / "job.store"
    files = {rank: str(file) for rank, file in enumerate(sorted(traces.iterdir()))}
    ingest_only(files, path, run="job", jobs=1)
    return path


Printed = tuple[int, str, str]


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Printed]:
    """Return a function that runs a command on a pseudo-terminal.

    It returns the exit code, stdout and stderr.
    """

    def call(*args: str | Path) -> Printed:
        with terminal() as (out, printed), terminal() as (err, complained):
            with (
                open(out, "w", encoding="utf-8", closefd=False) as stdout,
                open(err, "w", encoding="utf-8", closefd=False) as stderr,
            ):
                monkeypatch.setattr(sys, "stdout", stdout)
                monkeypatch.setattr(sys, "stderr", stderr)
                code = main([str(arg) for arg in args])
            monkeypatch.undo()
            return code, printed(), complained()

    return call


@pytest.mark.parametrize("format_name", FORMATS)
def test_no_format_acts_on_the_terminal(
    at_a_terminal: Callable[..., Printed], store: Path, format_name: str
) -> None:
    """Control characters are escaped in every format."""
    code, out, _ = at_a_terminal("sql", store, SQL, "--format", format_name, "--limit", "5")
    assert code == 0
    assert acting(out) == set()
    # A table may truncate the middle of a name.
    assert "\\x1b[66;6" in out.replace("\\\\", "\\").replace("\\[", "[").replace("\\u001b", "\\x1b")


def test_json_on_a_terminal_stays_json(at_a_terminal: Callable[..., Printed], store: Path) -> None:
    """JSON printed on a terminal can be parsed, with unchanged values."""
    _, out, _ = at_a_terminal("sql", store, SQL, "--format", "json")
    with hta_sql.open(store) as opened:
        assert json.loads(out) == opened.sql(SQL).records()


@pytest.mark.parametrize("format_name", PRINTED)
def test_files_and_pipes_have_the_names_as_they_are(
    cli: Cli, store: Path, tmp_path: Path, format_name: str
) -> None:
    """Files and pipes receive unchanged names."""
    file = tmp_path / f"rows.{format_name}"
    assert cli("sql", store, SQL, "-o", file).code == 0
    piped = cli("sql", store, SQL, "--format", format_name).raw
    written = io.BytesIO()
    with hta_sql.open(store) as opened:
        WRITERS[format_name](opened.sql(SQL), written)
    assert piped == file.read_bytes() == written.getvalue()
    assert "\x9b66m".encode() in piped
    assert "\u202e".encode() in piped


COMMANDS = (
    ("list", "STORE"),
    ("list", "STORE", "--format", "csv"),
    ("run", "STORE", "gpu_kernels_by_name"),
    ("run", "STORE", "gpu_kernels_by_name", "--format", "csv"),
    ("run", "STORE", "collective_waits", "--format", "json"),
    ("advice", "STORE"),
    ("critical-path", "STORE"),
    ("critical-path", "STORE", "--format", "json"),
    ("doctor", "STORE"),
    ("serving", "STORE"),
    ("doctor", "STORE", "--format", "json"),
    ("compare", "STORE:job", "STORE:job"),
    ("compare", "STORE:job", "STORE:job", "--format", "json"),
    ("compare", "STORE:job", "STORE:job", "--format", "markdown"),
    ("gate", "--baseline", "STORE:job", "--candidate", "STORE:job"),
    ("gate", "--baseline", "STORE:job", "--candidate", "STORE:job", "--format", "json"),
    ("verify", "STORE", "--deep"),
    ("verify", "STORE", "--format", "json"),
    ("counters", "STORE", "-o", "OUT"),
    ("open", "STORE", "-o", f"OUT/{HOSTILE}.json".replace("\x00", "")),
    ("sql", "STORE", f"SELECT '{HOSTILE}' AS \"{HOSTILE}\"".replace("\x00", "")),
    ("describe", "gpu_kernels_by_name"),
    ("ingest", "TRACES", "-o", "OUT/other.store", "--verbose"),
    ("export", "STORE", "--redact", "--dry-run"),
    ("report", "STORE", "-o", "OUT/report.html"),
)
MISTAKES = (
    ("sql", "STORE", f'FROM "{HOSTILE}"'.replace("\x00", "")),
    ("describe", HOSTILE),
    ("run", "STORE", HOSTILE),
    ("list", HOSTILE.replace("\x00", "")),
)


@pytest.mark.parametrize(
    "command", COMMANDS, ids=lambda words: " ".join(words[:1] + words[2:])[:40]
)
def test_no_command_acts_on_the_terminal(
    at_a_terminal: Callable[..., Printed],
    store: Path,
    traces: Path,
    tmp_path: Path,
    command: tuple[str, ...],
) -> None:
    """No command prints control characters, whether in data, errors or progress messages."""
    places = {"STORE": store, "TRACES": traces, "OUT": tmp_path}
    words = list(command)
    for name, path in places.items():
        words = [word.replace(name, str(path)) for word in words]
    code, out, err = at_a_terminal(*words)
    assert code == (command in MISTAKES)
    assert acting(out.replace("\x1b[1m", "").replace("\x1b[0m", "")) == set()  # our headings
    # A progress bar moves the cursor itself.
    assert [text for text in EVIL if text != "\r" and text in err] == []
    assert acting(err) <= set("\x1b\r")


def test_a_process_at_a_terminal_escapes(store: Path) -> None:
    """A command in a separate process escapes names, even in the traceback of a bug."""
    crash = "from hta_sql.cli import program, main; import click, sys\n"
    crash += "def fail(*a, **k): raise KeyError(sys.argv[1])\n"
    crash += "program.main = fail; main([])"
    for command in (
        ["-m", "hta_sql", "sql", str(store), SQL, "--format", "csv"],
        ["-c", crash, HOSTILE.replace("\x00", "").replace("\\", "")],
    ):
        with terminal() as (both, printed):
            subprocess.run(  # noqa: S603 - our own program
                [sys.executable, *command], stdout=both, stderr=both, check=False
            )
            shown = printed()
        assert "66;6m" in shown
        assert acting(shown) == set()


def test_what_is_escaped() -> None:
    """Control and format characters are escaped, except newlines and tabs."""
    assert acting(escaped("".join(map(chr, range(0x3000))))) == set()
    assert escaped("a\tb\nc é漢🚀") == "a\tb\nc é漢🚀"
    assert escaped("\x1b\x9b\U000e0041") == "\\x1b\\u009b\\udb40\\udc41"


def test_sentences_are_wrapped_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, long lines are wrapped with their indentation, but commands are not split.

    Output to a pipe is not wrapped.
    """
    command = "hta-sql run /tmp/job.store collective_history --ranks 2"
    text = f"1. Rank 2 never entered; see {command} and docs.\n   {'word ' * 20}"
    assert wrapped(text) == text
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    lines = wrapped(text).splitlines()
    assert max(map(len, lines)) <= 60
    assert any(command in line for line in lines)
    assert [line[:4] for line in lines[-2:]] == ["   w", "   w"]
