"""Every rule of the SQL library catches a file that breaks it, and says what to do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from hta_sql.errors import LibraryError
from hta_sql.sqlfiles import sql_root
from hta_sql.validation import check_library, find_problems, freeze
from hta_sql.validation.__main__ import main
from hta_sql.validation.frozen import LOCK

if TYPE_CHECKING:
    from collections.abc import Callable

ANALYSIS = "analyses/communication/comm_comp_overlap_v1.sql"
LIB = ("scoped_gpu_ops", "class_segments", "gaps")

Edit = tuple[str, str]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A library in small that keeps the rules: all tables, three macros, one analysis."""
    source, root = sql_root(), tmp_path / "sql"
    shutil.copytree(source / "tables", root / "tables")
    for relative in (*(f"lib/{name}.sql" for name in LIB), ANALYSIS):
        (root / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / relative, root / relative)
    golden = tmp_path / "tests" / "golden" / "communication"
    golden.mkdir(parents=True)
    (golden / "comm_comp_overlap_v1.test").touch()
    return root


@pytest.fixture
def problems_after(root: Path) -> Callable[..., list[str]]:
    """Change one file of the small library and return its problems."""

    def change(relative: str, *edits: Edit) -> list[str]:
        path = root / relative
        text = path.read_text(encoding="utf-8")
        for old, new in edits:
            assert old in text, f"{relative} does not contain {old!r}"
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
        return find_problems(root)

    return change


def test_the_library_keeps_its_rules() -> None:
    """No file of this repository breaks a rule."""
    assert find_problems() == []


def test_the_small_library_keeps_its_rules(root: Path) -> None:
    """What the other tests break is whole."""
    assert find_problems(root) == []
    assert [a.name for a in check_library(root).analyses] == ["comm_comp_overlap_v1"]


TEXT_RULES: dict[str, tuple[str, list[Edit], str]] = {
    "number without unit": (
        ANALYSIS,
        [("communication_ns  BIGINT [ns]  ", "communication_ns  BIGINT       ")],
        "column communication_ns has no unit: write its unit in brackets behind the type",
    ),
    "ratio without unit": (
        ANALYSIS,
        [("DOUBLE [%]   overlapped", "DOUBLE       overlapped")],
        "column overlap_pct has no unit",
    ),
    "unit against the name": (
        ANALYSIS,
        [("overlapped_ns     BIGINT [ns]  ", "overlapped_ns     BIGINT [us]  ")],
        "column overlapped_ns has the unit [us], but its name says [ns]",
    ),
    "unit that the name hides": (
        ANALYSIS,
        [("overlapped_ns", "overlapped")],
        "column overlapped is in [ns]: call it overlapped_ns",
    ),
    "unknown unit": (
        ANALYSIS,
        [("DOUBLE [%]   overlapped", "DOUBLE [percent]  overlapped")],
        "column overlap_pct has the unit [percent]; known are",
    ),
    "text with a unit": (
        ANALYSIS,
        [("run               VARCHAR      ", "run               VARCHAR [1]  ")],
        "column run is VARCHAR and has a unit",
    ),
    "column documented twice": (
        ANALYSIS,
        [("--   rank  ", "--   run   ")],
        "column run is documented twice",
    ),
    "no columns": (
        "lib/gaps.sql",
        [("-- Columns:", "-- Returns:")],
        "it documents no columns; list them under '-- Columns:'",
    ),
    "parameter without words": (
        ANALYSIS,
        [("    -- Runs to include; NULL means every run.\n", "")],
        "parameter runs has no words",
    ),
    "parameter without default": (
        ANALYSIS,
        [("ranks INTEGER[] := NULL", "ranks INTEGER[]")],
        "parameter ranks needs a type and a default",
    ),
    "scope of another type": (
        ANALYSIS,
        [("steps BIGINT[] := NULL", "steps INTEGER[] := NULL")],
        "it does not begin with the parameters runs VARCHAR[] := NULL, ranks INTEGER[] := NULL, steps",
    ),
    "scope left out": (
        ANALYSIS,
        [
            (
                "    -- Profiler steps to include; NULL means every step and what lies outside of steps.\n",
                "",
            ),
            ("    steps BIGINT[] := NULL,\n", ""),
            ("(runs, ranks, steps,", "(runs, ranks, NULL,"),
        ],
        "it does not begin with the parameters",
    ),
    "parameter that shadows a column of a table": (
        ANALYSIS,
        [
            (
                "BOOLEAN := false\n",
                "BOOLEAN := false,\n    -- Only this stream.\n    stream BIGINT := NULL\n",
            )
        ],
        "parameter stream is also a column of",
    ),
    "parameter that shadows a column of its own": (
        "lib/gaps.sql",
        [("    spans\n", "    lane\n"), ("query_table(spans)", "query_table(lane)")],
        "parameter lane is also a column of this file",
    ),
    "status": (
        ANALYSIS,
        [("-- Status: stable", "-- Status: done")],
        "Status is 'done'; write stable or experimental",
    ),
    "no status": (
        ANALYSIS,
        [("-- Status: stable\n", "")],
        "the header has no line '-- Status: ...'",
    ),
    "no since": (ANALYSIS, [("-- Since: 0.1\n", "")], "the header has no line '-- Since: ...'"),
    "since what": (ANALYSIS, [("-- Since: 0.1", "-- Since: May")], "Since is 'May'"),
    "no reference": (
        ANALYSIS,
        [("-- Reference: HTA get_comm_comp_overlap\n", "")],
        "the header has no line '-- Reference: ...'",
    ),
    "no needs": (
        ANALYSIS,
        [("-- Needs: GPU activity\n", "")],
        "the header has no line '-- Needs: ...'",
    ),
    "another name than the file": (
        ANALYSIS,
        [("MACRO comm_comp_overlap_v1(", "MACRO communication_overlap_v1(")],
        "it creates communication_overlap_v1; call the file communication_overlap_v1.sql",
    ),
    "two statements": (
        ANALYSIS,
        [("ORDER BY run, rank", "ORDER BY run, rank;\nSELECT 1")],
        "it holds 2 statements; a file is one statement",
    ),
    "not SQL": (ANALYSIS, [("FROM times AS t", "FROM times AS")], "the engine cannot parse it"),
    "CTE with an underscore in an analysis": (
        ANALYSIS,
        [("times", "_times")],
        "CTE _times starts with _; those of lib do",
    ),
    "CTE without one in lib": (
        "lib/gaps.sql",
        [("_bounds", "bounds")],
        "CTE bounds could hide a caller's relation of that name; call it _bounds",
    ),
    "another analysis": (
        ANALYSIS,
        [("FROM times AS t", "FROM times AS t, idle_gaps_v1() AS i")],
        "it calls idle_gaps_v1; an analysis uses tables and lib, never another analysis",
    ),
    "a view of another analysis": (
        ANALYSIS,
        [("FROM times AS t", "FROM times AS t, idle_gaps AS i")],
        "it reads idle_gaps, which is not a table of sql/tables",
    ),
    "what views are made of": (
        ANALYSIS,
        [("FROM times AS t", "FROM times AS t, stored.gpu_ops AS g")],
        "it reads stored.gpu_ops, which is not a table of sql/tables",
    ),
    "a file": (
        ANALYSIS,
        [("FROM times AS t", "FROM times AS t, read_csv('x.csv') AS x")],
        "it calls read_csv; an analysis uses tables and lib",
    ),
    "a launch name": (
        ANALYSIS,
        [("ORDER BY run, rank", "WHERE 'cudaLaunchKernel' = t.lane.run\nORDER BY run, rank")],
        "it contains the launch name 'cudaLaunchKernel'; find launches by correlation",
    ),
    "no order": (ANALYSIS, [("\nORDER BY run, rank", "")], "it does not end with an ORDER BY"),
}


@pytest.mark.parametrize("rule", list(TEXT_RULES))
def test_a_rule_about_the_text(rule: str, problems_after: Callable[..., list[str]]) -> None:
    """The message names the file and what to do."""
    relative, edits, message = TEXT_RULES[rule]
    problems = problems_after(relative, *edits)
    assert any(f"sql/{relative}: {message}" in problem for problem in problems), problems


ENGINE_RULES: dict[str, tuple[str, list[Edit], str]] = {
    "documents a column that it does not return": (
        ANALYSIS,
        [("-- Columns:\n", "-- Columns:\n--   job               VARCHAR      Job name.\n")],
        "it documents job, which it does not return",
    ),
    "returns a column that it does not document": (
        ANALYSIS,
        [("    t.overlapped_ns,\n", "    t.overlapped_ns,\n    1 AS one,\n")],
        "it returns one INTEGER, which it does not document",
    ),
    "returns another type": (
        ANALYSIS,
        [("overlapped_ns     BIGINT", "overlapped_ns     INTEGER")],
        "column overlapped_ns is BIGINT, documented as INTEGER",
    ),
    "returns them in another order": (
        ANALYSIS,
        [
            (
                "    t.communication_ns,\n    t.overlapped_ns,\n",
                "    t.overlapped_ns,\n    t.communication_ns,\n",
            )
        ],
        "it returns the columns in the order run, rank, overlapped_ns, communication_ns",
    ),
    "calls what is not there": (
        ANALYSIS,
        [("lib.class_segments('spans')", "lib.class_segments('nothing')")],
        "the engine refuses it",
    ),
    "a table with another type": (
        "tables/steps.sql",
        [("is_last   BOOLEAN", "is_last   VARCHAR")],
        "column is_last is BOOLEAN, documented as VARCHAR",
    ),
    "a macro with another type": (
        "lib/gaps.sql",
        [("dur   BIGINT [ns]", "dur   DOUBLE [ns]")],
        "column dur is BIGINT, documented as DOUBLE",
    ),
    "a macro that returns more than the table it names": (
        "lib/scoped_gpu_ops.sql",
        [("SELECT g.*\n", "SELECT g.*, true AS wanted\n")],
        "it returns wanted BOOLEAN, which it does not document",
    ),
}


@pytest.mark.parametrize("rule", list(ENGINE_RULES))
def test_a_rule_that_the_engine_knows(rule: str, problems_after: Callable[..., list[str]]) -> None:
    """Words and engine agree, or the message shows both."""
    relative, edits, message = ENGINE_RULES[rule]
    (problem,) = problems_after(relative, *edits)
    assert f"sql/{relative}: {message}" in problem


def test_an_analysis_needs_a_golden_test(root: Path) -> None:
    """One more analysis is two files."""
    (root.parent / "tests/golden/communication/comm_comp_overlap_v1.test").unlink()
    (problem,) = find_problems(root)
    assert problem == (
        f"sql/{ANALYSIS}: it has no golden test; write "
        "tests/golden/communication/comm_comp_overlap_v1.test (trace, call, expected rows)."
    )


def test_an_installation_without_tests_is_not_blamed(root: Path) -> None:
    """The wheel holds no golden tests; the other rules hold."""
    shutil.rmtree(root.parent / "tests")
    assert find_problems(root) == []


def test_a_topic_is_one_of_the_list(root: Path) -> None:
    """A new folder is a decision, not a typing error."""
    (root / "analyses/communication").rename(root / "analyses/comms")
    (root.parent / "tests/golden/communication").rename(root.parent / "tests/golden/comms")
    (problem,) = find_problems(root)
    assert "it stands in comms/; the topics are timeline kernels" in problem


def second_version(root: Path, *edits: Edit) -> None:
    """Add comm_comp_overlap_v2 with its golden test."""
    text = (root / ANALYSIS).read_text(encoding="utf-8").replace("overlap_v1", "overlap_v2")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (root / ANALYSIS.replace("_v1", "_v2")).write_text(text, encoding="utf-8")
    (root.parent / "tests/golden/communication/comm_comp_overlap_v2.test").touch()


def test_a_second_version_says_what_changed(root: Path) -> None:
    """Versions stand side by side, each with its reason."""
    second_version(root)
    (problem,) = find_problems(root)
    assert "version 2 does not say what changed; add a line '-- Changed: ...'" in problem
    second_version(root, ("-- Since: 0.1", "-- Since: 0.2\n-- Changed: copies hide nothing."))
    assert find_problems(root) == []


def test_an_unversioned_analysis_is_refused(root: Path) -> None:
    """The version is part of the name from the start."""
    path = root / ANALYSIS
    text = path.read_text(encoding="utf-8").replace("overlap_v1(", "overlap(")
    path.with_name("comm_comp_overlap.sql").write_text(text, encoding="utf-8")
    path.unlink()
    assert any(
        "its name has no version; call it comm_comp_overlap_v1" in p for p in find_problems(root)
    )


def test_a_file_that_is_no_macro_is_named(root: Path) -> None:
    """What cannot even be read is one problem with a file name, not a traceback."""
    (root / ANALYSIS).write_text("SELECT 1\n", encoding="utf-8")
    (problem,) = find_problems(root)
    assert problem.startswith(f"sql/{ANALYSIS}: no 'CREATE OR REPLACE MACRO name('")
    with pytest.raises(LibraryError, match="no 'CREATE OR REPLACE MACRO"):
        check_library(root)


def release(root: Path, heading: str) -> None:
    """Write a changelog with one heading."""
    (root.parent / "CHANGELOG.md").write_text(f"# Changes\n\n## {heading}\n", encoding="utf-8")


@pytest.mark.parametrize("heading", ["0.1.0 (unreleased)", "Unreleased", "0.0.9 (2026-01-31)"])
def test_nothing_is_frozen_before_its_release(root: Path, heading: str) -> None:
    """A heading without a date is no release; an older release does not hold the analysis."""
    release(root, heading)
    assert freeze(root) == []
    assert find_problems(root) == []


def test_a_release_freezes_its_analyses(root: Path) -> None:
    """From the date in the changelog on, a changed file is refused in favour of a new version."""
    release(root, "0.1.0 (2026-01-31)")
    assert find_problems(root) == [
        f"sql/{ANALYSIS}: it is released but not frozen; run: make freeze."
    ]
    assert freeze(root) == ["communication/comm_comp_overlap_v1.sql"]
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


def test_a_released_file_does_not_vanish(root: Path) -> None:
    """Who pinned _v1 finds it in every later release."""
    release(root, "[0.1.0] - 2026-01-31")
    freeze(root)
    second_version(root, ("-- Since: 0.1", "-- Since: 0.2\n-- Changed: copies hide nothing."))
    (root / ANALYSIS).unlink()
    assert find_problems(root) == [f"sql/{ANALYSIS}: it was released and is gone; restore it."]


def test_experimental_and_later_analyses_are_not_frozen(root: Path) -> None:
    """Only what a release promised is kept."""
    path = root / ANALYSIS
    text = path.read_text(encoding="utf-8")
    second_version(root, ("-- Since: 0.1", "-- Since: 0.2\n-- Changed: copies hide nothing."))
    path.write_text(text.replace("Status: stable", "Status: experimental"), encoding="utf-8")
    release(root, "0.1.0 (2026-01-31)")
    assert freeze(root) == []
    assert not (root / LOCK).exists()


def test_the_command_prints_problems_and_fails(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """A broken library is exit code 1; messages go to stderr, nothing to stdout."""
    monkeypatch.setattr("hta_sql.validation.sql_root", lambda: root)
    monkeypatch.setattr("hta_sql.validation.__main__.sql_root", lambda: root)
    whole = CliRunner().invoke(main, ["--freeze"])
    assert (whole.exit_code, whole.stdout) == (0, "")
    release(root, "0.1.0 (2026-01-31)")
    broken = CliRunner().invoke(main)
    assert broken.exit_code == 1
    assert "it is released but not frozen" in broken.stderr
    frozen = CliRunner().invoke(main, ["--freeze"])
    assert (frozen.exit_code, frozen.stdout) == (0, "")
    assert "frozen: communication/comm_comp_overlap_v1.sql" in frozen.stderr
