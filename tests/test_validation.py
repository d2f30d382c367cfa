"""Tests that each rule of the SQL library detects a file that breaks it and proposes a remedy."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from click.testing import CliRunner

from hta_sql.errors import LibraryError
from hta_sql.library.objects import SqlObject, parse_library
from hta_sql.library.rules.statement import read_statement
from hta_sql.library.sql_files import sql_root
from tests.broken_libraries import ANALYSIS, ENGINE_RULES, TEXT_RULES, Edit
from tests.sql_rules.frozen import LOCK, freeze, refreeze
from tests.sql_rules.private import private_problems
from tests.sql_rules.problems import check_library, find_problems
from tests.sql_rules.run import main
from tests.sql_rules.stored import stored_problems

if TYPE_CHECKING:
    from collections.abc import Callable

LIB = (
    *("scope/is_requested", "values/exact_std", "scope/scoped_gpu_ops", "steps/class_segments"),
    "intervals/gaps",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Write a small library that follows the rules: tables, five macros and one analysis."""
    source, root = sql_root(), tmp_path / "sql"
    # Without the tables that sql/derived computes, because they need most of sql/lib.
    computed = [path.name.replace("_v1", "") for path in (source / "derived").iterdir()]
    shutil.copytree(source / "tables", root / "tables", ignore=lambda *_: computed)
    for relative in (*(f"lib/{name}.sql" for name in LIB), ANALYSIS):
        (root / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / relative, root / relative)
    shutil.copy(source / "stored_columns.json", root)
    golden = tmp_path / "tests" / "golden" / "communication"
    golden.mkdir(parents=True)
    (golden / "comm_comp_overlap_v1.test").touch()
    return root


@pytest.fixture
def problems_after(root: Path) -> Callable[..., list[str]]:
    """Return a function that edits a file of the small library and returns the problems."""

    def change(relative: str, *edits: Edit) -> list[str]:
        path = root / relative
        text = path.read_text(encoding="utf-8")
        for old, new in edits:
            assert old in text, f"{relative} does not contain {old!r}"
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
        return without_lines(find_problems(root))

    return change


def without_lines(problems: list[str]) -> list[str]:
    """Remove line numbers from problems; :mod:`tests.user_analyses` tests these."""
    return [re.sub(r"(\.sql):\d+: ", r"\1: ", problem) for problem in problems]


def test_a_macro_with_one_caller_is_private(root: Path) -> None:
    """A macro with a single caller must be private: its name must start with an underscore."""
    found = [str(problem) for problem in private_problems(parse_library(root))]
    said = "it has one caller; call it lib._is_requested, in the file's name too"
    assert any("is_requested.sql" in line and said in line for line in found)


def test_versions_of_an_analysis_are_one_caller(root: Path) -> None:
    """Two versions of an analysis count as one caller, so a new version renames no macros."""
    one_version = [str(problem) for problem in private_problems(parse_library(root))]
    second_version(root)
    assert [str(problem) for problem in private_problems(parse_library(root))] == one_version
    assert any("is_requested.sql" in line for line in one_version)


def test_a_share_states_its_denominator(root: Path) -> None:
    """A column whose name ends in _pct is reported if its description states no denominator."""
    path = root / ANALYSIS
    text = path.read_text(encoding="utf-8")
    assert "overlapped / communication" in text
    path.write_text(text.replace("overlapped / communication", "Overlapped"), encoding="utf-8")
    (found,) = find_problems(root)
    assert (
        "column overlap_pct has no denominator; write 'share of …', 'part of …', "
        "'per second of …' or 'a / b'" in found
    )


@pytest.mark.slow(reason="check")
def test_the_library_keeps_its_rules() -> None:
    """The library of this repository breaks no rule."""
    assert find_problems() == []


def test_the_small_library_keeps_its_rules(root: Path) -> None:
    """The small library, whose files other tests break, follows all rules."""
    assert find_problems(root) == []
    assert [a.name for a in check_library(root).analyses] == ["comm_comp_overlap_v1"]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("a.own_ns * b.block_ns / 2", {"a.own_ns * b.block_ns"}),
        ("sum(a.dur * (a.ts - b.end_ts))", {"a.dur * a.ts"}),
        ("least(a.own_ns, 5) * -coalesce(b.dur, 0)", {"a.own_ns * b.dur"}),
        ("100 * a.ns / b.ns", {"100 * a.ns"}),
        ("a.wait_ns * 1000", {"1000 * a.wait_ns"}),
        ("a.own_ns::HUGEINT * b.block_ns", set()),
        ("a.own_ns * b.block_ns::DOUBLE", set()),
        ("100::DOUBLE * a.ns / b.ns", set()),
        ("100 * (a.ns / b.ns)", set()),
        ("0.5 * a.ns + 8 * b.dur", set()),
        ("a.ns * b.step_count", set()),
        ("100 * sum(a.dur)", set()),
    ],
)
def test_products_of_times_that_overflow(expression: str, found: set[str]) -> None:
    """Products of two times, or of a time and 100 or more, need a cast; quotients and sums are wide enough."""
    with duckdb.connect(":memory:") as con:
        text = f"CREATE MACRO x() AS\n{expression}\n"
        about = SqlObject(Path("x.sql"), "x", text, (0, 0, 0), is_scalar=True)
        assert read_statement(con, about).products == found


@pytest.mark.parametrize("rule", list(TEXT_RULES))
def test_a_rule_about_the_text(rule: str, problems_after: Callable[..., list[str]]) -> None:
    """A rule on the text of a file reports the file and a remedy."""
    relative, edits, message = TEXT_RULES[rule]
    problems = problems_after(relative, *edits)
    assert any(f"sql/{relative}: {message}" in problem for problem in problems), problems


@pytest.mark.parametrize("rule", list(ENGINE_RULES))
def test_a_rule_that_the_engine_knows(rule: str, problems_after: Callable[..., list[str]]) -> None:
    """If comments disagree with the engine, the message states what each of them says."""
    relative, edits, message = ENGINE_RULES[rule]
    (problem,) = problems_after(relative, *edits)
    assert f"sql/{relative}: {message}" in problem


def test_a_refused_file_is_one_problem(problems_after: Callable[..., list[str]]) -> None:
    """A table that the engine refuses is a single problem.

    Macros and analyses based on it are not checked.
    """
    (problem,) = problems_after("tables/gpu_ops.sql", ("    x.seq,\n", "    x.sequence AS seq,\n"))
    assert "sql/tables/gpu_ops.sql: the engine rejects the statement" in problem


def test_a_stale_list_of_stored_columns_is_reported(root: Path) -> None:
    """A stale stored_columns.json is reported with the command to run."""
    assert stored_problems(root) == []
    (root / "stored_columns.json").write_text("{}\n", encoding="utf-8")
    (problem,) = stored_problems(root)
    assert problem.endswith("does not list the columns that sql/ingest stores; run make docs.")


def test_an_analysis_needs_a_golden_test(root: Path) -> None:
    """A new analysis without a golden test is reported."""
    (root.parent / "tests/golden/communication/comm_comp_overlap_v1.test").unlink()
    (problem,) = without_lines(find_problems(root))
    assert problem == (
        f"sql/{ANALYSIS}: the golden test is missing; write "
        "tests/golden/communication/comm_comp_overlap_v1.test (trace, call, expected rows)."
    )


def test_an_installation_without_tests_is_not_blamed(root: Path) -> None:
    """Without a test folder, as in an installed wheel, missing golden tests are not reported."""
    shutil.rmtree(root.parent / "tests")
    assert find_problems(root) == []


def test_a_topic_is_one_of_the_list(root: Path) -> None:
    """A folder that is not on the list of topics is reported, so that typos are noticed."""
    (root / "analyses/communication").rename(root / "analyses/comms")
    (root.parent / "tests/golden/communication").rename(root.parent / "tests/golden/comms")
    (problem,) = find_problems(root)
    assert "it stands in comms/; the topics are timeline kernels" in problem


def second_version(root: Path, *edits: Edit) -> None:
    """Add comm_comp_overlap_v2, a copy of version 1 with the given edits, and its golden test."""
    text = (root / ANALYSIS).read_text(encoding="utf-8").replace("overlap_v1", "overlap_v2")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (root / ANALYSIS.replace("_v1", "_v2")).write_text(text, encoding="utf-8")
    (root.parent / "tests/golden/communication/comm_comp_overlap_v2.test").touch()


def test_a_second_version_says_what_changed(root: Path) -> None:
    """Two versions can coexist, but the second must state what changed."""
    second_version(root)
    (problem,) = find_problems(root)
    assert "version 2 does not state what changed; add a line '-- Changed: ...'" in problem
    second_version(root, ("-- Since: 0.1", "-- Since: 0.2\n-- Changed: copies hide nothing."))
    assert find_problems(root) == []


def test_what_a_chart_is_drawn_from_has_to_be_there(root: Path) -> None:
    """A ``Drawn from`` line that names no existing analysis is reported."""
    path = root / ANALYSIS
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("-- Since: 0.1", "-- Since: 0.1\n-- Drawn from: nothing_such"))
    (problem,) = find_problems(root)
    assert "Drawn from names 'nothing_such'; write the name of an analysis" in problem


@pytest.mark.parametrize("part", ["num_kernels := 10", "first", "without shapes: Unknown."])
def test_an_unknown_part_of_the_line_about_a_section_is_reported(root: Path, part: str) -> None:
    """An unknown part of the ``Report`` line is reported, and so is an unknown parameter."""
    path = root / ANALYSIS
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("-- Report: first 4", f"-- Report: first 4; {part}"))
    (problem,) = find_problems(root)
    assert f"Report says {part!r}; write no, first N, table, chart, of several ranks" in problem


def test_an_unversioned_analysis_is_refused(root: Path) -> None:
    """An analysis without a version in its name is a problem."""
    path = root / ANALYSIS
    text = path.read_text(encoding="utf-8").replace("overlap_v1(", "overlap(")
    path.with_name("comm_comp_overlap.sql").write_text(text, encoding="utf-8")
    path.unlink()
    assert any(
        "the name has no version; rename the analysis and the file to comm_comp_overlap_v1" in p
        for p in find_problems(root)
    )


def test_a_file_that_is_no_macro_is_named(root: Path) -> None:
    """A file that cannot be parsed is one problem that names the file."""
    (root / ANALYSIS).write_text("SELECT 1\n", encoding="utf-8")
    (problem,) = find_problems(root)
    assert problem.startswith(f"sql/{ANALYSIS}:1: no 'CREATE OR REPLACE MACRO name('")
    with pytest.raises(LibraryError, match="no 'CREATE OR REPLACE MACRO"):
        check_library(root)


def release(root: Path, heading: str) -> None:
    """Write a changelog with a single heading."""
    (root.parent / "CHANGELOG.md").write_text(f"# Changes\n\n## {heading}\n", encoding="utf-8")


@pytest.mark.parametrize("heading", ["0.1.0 (unreleased)", "Unreleased", "0.0.9 (2026-01-31)"])
def test_nothing_is_frozen_before_its_release(root: Path, heading: str) -> None:
    """A heading without a date is not a release; an older release does not contain the analysis."""
    release(root, heading)
    assert freeze(root) == []
    assert find_problems(root) == []


def test_a_release_freezes_its_analyses(root: Path) -> None:
    """After the release date in the changelog, an analysis can change only as a new version."""
    release(root, "0.1.0 (2026-01-31)")
    assert find_problems(root) == [
        f"sql/{ANALYSIS}: it is released but not frozen; run: make freeze."
    ]
    assert freeze(root) == ["comm_comp_overlap_v1"]
    assert freeze(root) == []
    assert find_problems(root) == []

    path = root / ANALYSIS
    path.write_text(
        path.read_text(encoding="utf-8").replace("100::DOUBLE *", "100.0 *"), encoding="utf-8"
    )
    assert freeze(root) == []
    (problem,) = find_problems(root)
    assert problem == (
        f"sql/{ANALYSIS}: it was released, and a released file does not change. Restore it and make "
        "comm_comp_overlap_v2.sql, with a line '-- Changed: ...'."
    )


@pytest.fixture
def frozen(root: Path) -> Path:
    """Release and freeze the small library, with one pinned answer."""
    release(root, "0.1.0 (2026-01-31)")
    (root.parent / "tests" / "pinned").mkdir()
    (root.parent / "tests" / "pinned" / "jobs.csv").write_text(
        "FROM comm_comp_overlap_v1(),rows=2\n"
    )
    freeze(root)
    return root


def change_macro(root: Path, old: str, new: str) -> None:
    """Replace a string in a macro that the analysis calls."""
    path = root / "lib" / "steps" / "class_segments.sql"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_macro_under_a_released_analysis_is_frozen(frozen: Path) -> None:
    """Changing a macro that a released analysis calls counts as changing the analysis.

    If pinned answers stay equal, a reason in the changelog allows it.
    """
    assert find_problems(frozen) == []
    change_macro(frozen, "SELECT", "SELECT ALL")
    (problem,) = find_problems(frozen)
    assert "class_segments under it changed, without a change of its pinned answers" in problem
    assert refreeze(frozen) == []  # no reason is given
    changelog = frozen.parent / "CHANGELOG.md"
    changelog.write_text(
        changelog.read_text() + "- Refrozen: lib.class_segments: says ALL, which is the default.\n"
    )
    assert refreeze(frozen) == ["comm_comp_overlap_v1"]
    assert find_problems(frozen) == []


def test_a_macro_that_changes_a_pinned_answer_needs_a_new_version(frozen: Path) -> None:
    """A change to a pinned answer needs a new version, whatever reason the changelog gives."""
    change_macro(frozen, "SELECT", "SELECT ALL")
    (frozen.parent / "tests" / "pinned" / "jobs.csv").write_text(
        "FROM comm_comp_overlap_v1(),rows=3\n"
    )
    changelog = frozen.parent / "CHANGELOG.md"
    changelog.write_text(changelog.read_text() + "- Refrozen: lib.class_segments: better.\n")
    assert refreeze(frozen) == []
    (problem,) = find_problems(frozen)
    assert "class_segments under it changed its pinned answers" in problem
    assert "make comm_comp_overlap_v2.sql" in problem


def test_a_comment_is_not_frozen(frozen: Path) -> None:
    """A changed comment needs no new version."""
    change_macro(
        frozen, "\nCREATE OR REPLACE", "\n--\n-- Reference: the same words\nCREATE OR REPLACE"
    )
    path = frozen / ANALYSIS
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("-- Since: 0.1", "-- Since: 0.1\n-- See: gaps", 1), "utf-8")
    assert not [problem for problem in find_problems(frozen) if "released" in problem]


def test_a_released_file_does_not_vanish(root: Path) -> None:
    """A released analysis must not be removed, because users depend on its name."""
    release(root, "[0.1.0] - 2026-01-31")
    freeze(root)
    second_version(root, ("-- Since: 0.1", "-- Since: 0.2\n-- Changed: copies hide nothing."))
    (root / ANALYSIS).unlink()
    assert find_problems(root) == [
        "sql/analyses: comm_comp_overlap_v1 was released and is gone; restore it."
    ]


def test_experimental_and_later_analyses_are_not_frozen(root: Path) -> None:
    """Experimental analyses and analyses of a later release are not frozen."""
    path = root / ANALYSIS
    text = path.read_text(encoding="utf-8")
    second_version(root, ("-- Since: 0.1", "-- Since: 0.2\n-- Changed: copies hide nothing."))
    path.write_text(text.replace("Status: stable", "Status: experimental"), encoding="utf-8")
    release(root, "0.1.0 (2026-01-31)")
    assert freeze(root) == []
    assert not (root / LOCK).exists()


def test_the_command_prints_problems_and_fails(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """For a broken library, the exit code is 1, and messages go to stderr."""
    monkeypatch.setattr("tests.sql_rules.run.find_problems", lambda: find_problems(root))
    monkeypatch.setattr("tests.sql_rules.run.sql_root", lambda: root)
    whole = CliRunner().invoke(main, ["--freeze"])
    assert (whole.exit_code, whole.stdout) == (0, "")
    release(root, "0.1.0 (2026-01-31)")
    broken = CliRunner().invoke(main)
    assert broken.exit_code == 1
    assert "it is released but not frozen" in broken.stderr
    frozen = CliRunner().invoke(main, ["--freeze"])
    assert (frozen.exit_code, frozen.stdout) == (0, "")
    assert "frozen: comm_comp_overlap_v1" in frozen.stderr
