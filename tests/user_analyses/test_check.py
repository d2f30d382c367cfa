"""``hta-sql new`` writes files that work at once; ``hta-sql check`` reports problems by line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql.authoring.check import folder_problems
from hta_sql.cli import main
from tests.user_analyses.folders import ANALYSIS, CASE, write_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_folder_that_keeps_the_rules(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without problems passes with exit code 0 and an empty stdout."""
    assert main(["check", str(team)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "No problems: 1 SQL file, 1 golden case.\n"


def test_new_then_check_then_run(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files that ``hta-sql new`` generates pass the check and run unchanged."""
    folder = tmp_path / "analyses"
    assert main(["new", "analysis", "longest", "--topic", "team", "--into", str(folder)]) == 0
    written = {
        Path(line).relative_to(folder).as_posix() for line in capsys.readouterr().out.split()
    }
    assert written == {
        "team/longest_v1.sql",
        "tests/team/longest_v1.test",
        "tests/traces/longest.json",
    }
    assert main(["check", str(folder)]) == 0
    with hta_sql.open(store, analyses=folder) as opened:
        rows = opened.run("longest", min_count=2).rows()
    assert rows == [("job", 0, "gemm_a", 3, 25_000)]


@pytest.mark.parametrize(
    ("name", "topic", "said"),
    [
        ("kpis", "own", "kpis is the name of a built-in analysis: "),
        ("gpu_ops", "own", "gpu_ops is the name of a built-in analysis: "),
        ("Longest", "own", "own/Longest: names may contain lowercase letters"),
        ("longest", "lib", "a topic must not be named lib or tests"),
        ("stream_load", "kernels", "the file already exists; choose another name, or create a _v2"),
    ],
)
def test_names_that_cannot_be(
    name: str, topic: str, said: str, team: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``hta-sql new`` with an invalid or existing name writes nothing."""
    before = sorted(team.rglob("*"))
    assert main(["new", "analysis", name, "--topic", topic, "--into", str(team)]) == 1
    assert said in capsys.readouterr().err
    assert sorted(team.rglob("*")) == before


RULES = {
    "a column without unit": (
        "busy_ns       BIGINT [ns]  ",
        "busy_ns       BIGINT       ",
        "--   busy_ns",
        "column busy_ns has no unit",
    ),
    "a parameter without words": (
        "    -- Leave out streams with fewer kernels.\n",
        "",
        "    min_kernels",
        "parameter min_kernels is not documented",
    ),
    "a line of the header": ("-- Needs: GPU activity\n", "", "--", "no line '-- Needs: ...'"),
    "a status": ("Status: stable", "Status: done", "-- Status", "Status is 'done'"),
    "a report that is not understood": (
        "Report: table",
        "Report: tables",
        "-- Report",
        "Report says 'tables'",
    ),
    "another analysis": (
        "FROM loads AS l\n",
        "FROM kpis_v1() AS l\n",
        "FROM kpis_v1",
        "it calls kpis_v1; an analysis may use only tables and lib",
    ),
    "a file": (
        "FROM loads AS l\n",
        "FROM read_csv('/etc/passwd') AS l\n",
        "FROM read_csv",
        "it calls read_csv; an analysis may use only tables and lib",
    ),
    "another answer each time": (
        "sum(g.dur)",
        "sum(g.dur + now()::BIGINT)",
        "        SELECT g.run",
        "it calls now; equal input must give equal output",
    ),
    "no order": ("\nORDER BY l.run, l.rank, l.stream;", ";", "--", "does not end with an ORDER BY"),
    "another type": (
        "stream        BIGINT ",
        "stream        INTEGER",
        "--   stream",
        "column stream is BIGINT, but documented as INTEGER",
    ),
    "a column that is not returned": (
        "--   kernel_count ",
        "--   launch_count ",
        "--   launch_count",
        "it documents launch_count, which it does not return",
    ),
    "a name that is nowhere": (
        "FROM loads AS l\n",
        "FROM burdens AS l\n",
        "FROM burdens",
        "it reads burdens, which is not a table",
    ),
    "a column that is nowhere": (
        "g.kind = 'kernel'",
        "g.sort = 'kernel'",
        "        WHERE g.sort",
        "the engine rejects the statement: Binder Error",
    ),
}
"""Rule ─▶ old and new text, prefix of the reported line, and part of the message."""


@pytest.mark.parametrize("rule", list(RULES))
def test_a_rule_is_told_with_its_line(rule: str, tmp_path: Path) -> None:
    """A broken rule is reported with its line, to which an editor can jump."""
    old, new, named, said = RULES[rule]
    assert old in ANALYSIS
    text = ANALYSIS.replace(old, new)
    write_folder(tmp_path, text=text)
    problems = folder_problems([tmp_path])
    line = f"\n{text}".index(f"\n{named}")
    place = f"{tmp_path}/kernels/stream_load_v1.sql:{text.count(chr(10), 0, line) + 1}: "
    assert any(problem.startswith(place) and said in problem for problem in problems), problems


def edited(folder: Path, *edits: tuple[str, str]) -> Iterator[str]:
    """Edit the golden case of a folder, and yield its problems without the file path."""
    text = CASE
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path = write_folder(folder) / "tests" / "kernels" / "stream_load_v1.test"
    path.write_text(text, encoding="utf-8")
    for problem in folder_problems([folder]):
        assert problem.startswith(f"{path}:")
        yield problem.removeprefix(f"{path}:")


def test_a_golden_case_with_other_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Expected and actual rows are printed below each other, and the exit code is 1."""
    (problem,) = edited(tmp_path, ("25000", "26000"))
    assert problem == (
        "1: the rows differ (- expected, + actual):\n"
        "      rank  stream  busy_ns  kernel_count\n"
        "    - 0     7       26000    3\n"
        "    + 0     7       25000    3\n"
        "      0     9       10000    2"
    )
    assert main(["check", str(tmp_path)]) == 1
    assert capsys.readouterr().out.endswith("stream_load_v1.test:" + problem + "\n")


def test_a_variable_of_python_is_no_table(tmp_path: Path) -> None:
    """A golden test cannot read Python variables of the checker as tables."""
    (problem,) = edited(tmp_path, ("FROM stream_load_v1()", "FROM stream_load_v1(), self"))
    assert "self does not exist" in problem


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# Three kernels", "Three kernels", "1: add a comment that states what the case checks."),
        *(
            case
            for case in (
                ("----\n", "", "1: write ---- between the call and the expected rows."),
                ("traces: ", "trace: ", "1: write 'traces: FILES', 'call: SQL', then '----'."),
                (
                    "FROM stream_load_v1()",
                    "FROM kpis_v1()",
                    "1: the case does not call stream_load_v1.",
                ),
            )
        ),
        (
            "two_streams.json",
            "gone.json",
            "1: traces: 'gone.json' does not name a trace; write FILE, RANK=FILE or RUN/RANK=FILE",
        ),
        ("SELECT rank,", "SELECT ranc,", "1: Binder Error: "),
    ],
)
def test_a_golden_case_that_cannot_be_asked(tmp_path: Path, old: str, new: str, said: str) -> None:
    """The error for a golden case that cannot run has the line number of the case."""
    (problem,) = edited(tmp_path, (old, new))
    assert problem.startswith(said)


def test_a_golden_test_of_nothing(tmp_path: Path) -> None:
    """A golden test without an analysis, or an analysis without a golden test, is reported."""
    write_folder(tmp_path)
    path = tmp_path / "tests" / "kernels" / "stream_load_v1.test"
    path.rename(path.with_name("old_v1.test"))
    (missing,) = folder_problems([tmp_path])
    assert missing.endswith(
        f"the golden test is missing; write {path} (trace, call, expected rows)."
    )
    path.write_text(CASE, encoding="utf-8")
    (left,) = folder_problems([tmp_path])
    assert left.startswith(f"{path.with_name('old_v1.test')}:1: there is no analysis named old_v1;")


def test_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage ends with exit code 2, and a folder without an analysis with exit code 1."""
    assert main(["check", str(tmp_path / "gone")]) == 2
    assert main(["check"]) == 2
    assert main(["new", "table", "x"]) == 2
    capsys.readouterr()
    assert main(["check", str(tmp_path)]) == 1
    assert "contains no analysis" in capsys.readouterr().out
