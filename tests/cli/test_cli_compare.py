"""Tests of ``hta-sql compare`` on two runs in one or two stores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

TRACES = Path(__file__).parents[1] / "traces"
JSON = ("--format", "json")
STEPS = ("--steps", "1", "--test-steps", "2", "--include-last-profiler-step")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest the runs ``base`` (one rank) and ``more`` (two ranks)."""
    path = tmp_path_factory.mktemp("compare") / "job.store"
    trace = str(TRACES / "annotated_operators.json")
    ingest_only({0: trace}, path, run="base")
    ingest_only({0: trace, 1: trace}, path, run="more")
    return path


def test_compare_prints_what_the_analyses_say(cli: Cli, runs: Path) -> None:
    """The JSON output has the figures of ``comparison`` and ``comparability``."""
    told = json.loads(cli("compare", f"{runs}:base", f"{runs}:base", *STEPS, *JSON).out)
    assert set(told) == {
        *("baseline", "candidate", "comparability", "headline", "parts", "changes", "causes")
    }
    options: dict[str, Any] = {"steps": [1], "test_steps": [2], "include_last_profiler_step": True}
    with hta_sql.open(runs) as store:
        rows = store.run("comparison", runs=["base"], **options).records()
        facts = store.run("comparability", runs=["base"], **options).records()
    assert told["headline"]["difference_ns"] == rows[0]["diff_ns"] == -100_000
    assert [part["difference_ns"] for part in told["parts"]] == [
        row["diff_ns"] for row in rows if row["level"] == "part"
    ]
    assert [change["subject"] for change in told["changes"]] == [
        row["subject"] for row in rows if row["level"] == "row" and row["is_change"]
    ]
    assert [fact["verdict"] for fact in told["comparability"]["facts"]] == [
        fact["verdict"] for fact in facts
    ]


def test_compare_tells_people(cli: Cli, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text output has the comparability, the headline, the parts of the step and the changes."""
    monkeypatch.setenv("COLUMNS", "200")  # a narrow terminal would wrap the headline
    done = cli("compare", f"{runs}:base", *STEPS)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "base (steps 1) ▸ base (steps 2): limited"
    assert "same operators and shapes: 0.0 %" in lines[1]
    assert "A step takes 100.000 µs less (200.000 µs ▸ 100.000 µs, -50.0 %)" in done.out
    assert "significance unknown" in done.out
    assert "aten::addmm" in done.out
    assert "removed" in done.out


def test_compare_fits_the_width_of_the_terminal(
    cli: Cli, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a narrow terminal, columns are omitted, but not the difference."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli("compare", f"{runs}:base", *STEPS).out.splitlines()
    assert max(map(len, lines)) <= 80
    (heads,) = (line for line in lines if line.startswith("what changed"))
    assert heads.split("  ")[-1].strip() == "difference"
    assert any("aten::addmm" in line and line.endswith("removed") for line in lines)


def test_a_run_against_itself_says_that_nothing_changed(cli: Cli, runs: Path) -> None:
    """If a run is compared with itself, the output says that nothing changed."""
    same = ("compare", f"{runs}:base", f"{runs}:base")
    assert "Nothing changed: a step takes 200.000 µs on both sides." in cli(*same).out
    assert json.loads(cli(*same, *JSON).out)["changes"] == []


def test_compare_writes_markdown(cli: Cli, runs: Path) -> None:
    """Markdown output has a heading and tables."""
    done = cli("compare", f"{runs}:base", *STEPS, "--format", "markdown")
    assert done.out.startswith("### base (steps 1) ▸ base (steps 2): limited")
    assert "| --- | --- |" in done.out
    assert "launched, not started" in done.out


def test_compare_chooses_ranks_and_several_tests(cli: Cli, runs: Path) -> None:
    """Two ranks of a run can be compared, and so can more than two runs."""
    call = ("compare", f"{runs}:more", "--ranks", "0", "--test-ranks", "1", *JSON)
    assert json.loads(cli(*call).out)["changes"] == []
    both = json.loads(cli("compare", f"{runs}:base", f"{runs}:more", f"{runs}:base", *JSON).out)
    assert [told["candidate"]["run"] for told in both["comparisons"]] == ["more", "base"]
    reasons = both["comparisons"][0]["comparability"]["reasons"]
    assert reasons == ["ranks: 1 ▸ 2"]


def test_compare_takes_names_of_the_user(cli: Cli, runs: Path) -> None:
    """``--renamed`` pairs operators with different names, which are then not listed as changes."""
    done = cli("compare", f"{runs}:base", *STEPS, *JSON, "--renamed", "aten::linear=aten::addmm")
    assert "gemm, forward" not in {change["subject"] for change in json.loads(done.out)["changes"]}
    cli("compare", f"{runs}:base", *STEPS, "--renamed", "x").fails(1, "new_name=old_name")


def test_compare_takes_two_stores_and_their_only_runs(
    cli: Cli, runs: Path, store: Path, tmp_path: Path
) -> None:
    """The run name may be omitted if a store has one run, and ``--chart`` draws a chart."""
    done = cli("compare", f"{runs}:base", store, *JSON)
    assert json.loads(done.out)["candidate"] == {"store": str(store), "run": "job"}
    chart = tmp_path / "diff.html"
    drawn = cli("compare", f"{runs}:base", store, "--chart", chart)
    assert (drawn.code, drawn.out) == (0, "")
    assert "Where the difference in step time comes from" in chart.read_text(encoding="utf-8")


def test_compare_says_which_runs_there_are(cli: Cli, runs: Path) -> None:
    """An error names an unknown run, rank or step, or a missing or empty run name."""
    cli("compare", f"{runs}:nope", f"{runs}:base").fails(
        2, "no run 'nope'", f"{runs}:base, {runs}:more"
    )
    cli("compare", runs, f"{runs}:base").fails(2, "several runs", f"{runs}:base, {runs}:more")
    cli("compare", f"{runs}:", f"{runs}:base").fails(2, "not of the form STORE:RUN")
    cli("compare", f"{runs}:base").fails(2, "pass a second run")
    cli("compare", f"{runs}:base", f"{runs}:more", "--test-ranks", "7").fails(1, "No rank 7")
    cli("compare", f"{runs}:base", f"{runs}:base", "--steps", "99").fails(
        1, "No step 99", "1-2 in run base"
    )


def test_compare_reads_traces(cli: Cli, runs: Path, tmp_path: Path) -> None:
    """Trace folders are compared like stores, and their temporary stores are deleted."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        shutil.copy(TRACES / "annotated_operators.json", tmp_path / name / "rank0.json")
    done = cli("compare", tmp_path / "one", tmp_path / "two", *JSON)
    assert done.code == 0
    assert f"{tmp_path / 'one'} was ingested temporarily" in done.err
    told = json.loads(done.out)
    assert (told["baseline"]["run"], told["candidate"]["run"]) == ("one", "two")
    assert told["headline"]["baseline_ns"] == 200_000
    mixed = cli("compare", f"{runs}:base", tmp_path / "two" / "rank0.json", *JSON)
    assert json.loads(mixed.out)["candidate"]["run"] == "rank0"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["rank0.json"] * 2
    (tmp_path / "empty").mkdir()
    cli("compare", tmp_path / "empty", tmp_path / "one").fails(1, "No traces in")
    cli("compare", tmp_path / "none", tmp_path / "one").fails(1, "none")


def test_compare_opens_the_store_beside_traces(cli: Cli, tmp_path: Path) -> None:
    """If a trace folder is already ingested, its store is used."""
    shutil.copy(TRACES / "annotated_operators.json", tmp_path / "rank0.json")
    assert cli("ingest", tmp_path).code == 0
    done = cli("compare", tmp_path, tmp_path, *JSON)
    assert done.code == 0
    assert "was ingested temporarily" not in done.err
