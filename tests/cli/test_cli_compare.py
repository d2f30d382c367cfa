"""hta-sql compare: two runs of one store or of two, what changed most first."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

TRACES = Path(__file__).parents[1] / "traces"
JSON = ("--format", "json")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the runs base (one rank) and more (two ranks)."""
    path = tmp_path_factory.mktemp("compare") / "job.store"
    trace = str(TRACES / "annotated_operators.json")
    hta_sql.ingest({0: trace}, path, run="base").close()
    hta_sql.ingest({0: trace, 1: trace}, path, run="more").close()
    return path


def test_compare_prints_what_the_analysis_says(cli: Cli, runs: Path) -> None:
    """The same rows as trace_diff; a note where one side has more ranks."""
    done = cli("compare", f"{runs}:base", f"{runs}:more", "--by-shapes", *JSON)
    assert done.code == 0
    assert "1 ranks of base against 2 of more; --ranks and --test-ranks" in done.err
    with hta_sql.open(runs) as store:
        expected = store.run("trace_diff", runs=["base", "more"], by_shapes=True).arrow()
    assert json.loads(done.out) == expected.to_pylist()


def test_compare_chooses_ranks_steps_and_sides(cli: Cli, runs: Path) -> None:
    """A run against itself: another step of another rank."""
    call = ("compare", f"{runs}:more", f"{runs}:more", "--ranks", "0", "--test-ranks", "1")
    steps = ("--steps", "1", "--test-steps", "2", "--include-last-profiler-step")
    done = cli(*call, *steps, "--only-side", "device", "--by-short-name", *JSON)
    assert [(row["name"], row["diff_sum_ns"]) for row in json.loads(done.out)] == [
        ("gemm", -13000),
        ("bias", -10000),
        ("sgemm", -8000),
        ("Memset (Device)", -2000),
    ]
    assert "note:" not in done.err


def test_compare_folds_steps(cli: Cli, runs: Path) -> None:
    """Steps of other numbers are one row, unless they are asked for by number."""
    call = ("compare", f"{runs}:base", f"{runs}:base", "--steps", "1", "--test-steps", "2")
    for options, steps in (
        ((), {"ProfilerStep": -100000}),
        (("--by-step-number",), {"ProfilerStep#1": -200000, "ProfilerStep#2": 100000}),
    ):
        done = cli(*call, "--include-last-profiler-step", *options, *JSON)
        rows = {row["name"]: row["diff_sum_ns"] for row in json.loads(done.out)}
        assert {n: ns for n, ns in rows.items() if n.startswith("Profiler")} == steps


def test_compare_takes_two_stores_and_their_only_runs(
    cli: Cli, runs: Path, store: Path, tmp_path: Path
) -> None:
    """The run may be left out where there is one; a chart is drawn on request."""
    done = cli("compare", f"{runs}:base", store, *JSON)
    assert {row["test_run"] for row in json.loads(done.out)} == {"job"}
    assert {row["change"] for row in json.loads(done.out)} == {"added", "deleted"}
    chart = tmp_path / "diff.html"
    drawn = cli("compare", f"{runs}:base", store, "--chart", chart)
    assert (drawn.code, drawn.out) == (0, "")
    assert "What changed most" in chart.read_text(encoding="utf-8")


def test_compare_says_which_runs_there_are(cli: Cli, runs: Path) -> None:
    """No run of that name, none given where there are several, nothing behind the colon."""
    cli("compare", f"{runs}:nope", f"{runs}:base").fails(2, "no run 'nope'", "base, more")
    cli("compare", runs, f"{runs}:base").fails(2, "several runs", "base, more")
    cli("compare", f"{runs}:", f"{runs}:base").fails(2, "not STORE:RUN")
    cli("compare", f"{runs}:base", f"{runs}:more", "--test-ranks", "7").fails(1, "No rank 7")


def test_compare_says_what_change_is_of(cli: Cli, runs: Path, tmp_path: Path) -> None:
    """Equally many that take longer are unchanged by count: a note beside the table alone."""
    call = ("compare", f"{runs}:base", f"{runs}:more")
    note = "change is by counts alone, diff_pct by duration."
    assert note in cli(*call).err
    assert note not in cli(*call, *JSON).err
    assert note not in cli(*call, "-o", tmp_path / "diff.csv").err


def test_compare_of_nothing_says_what_was_asked_for(cli: Cli, runs: Path) -> None:
    """Steps that there are not come before what the analysis needs."""
    done = cli("compare", f"{runs}:base", f"{runs}:base", "--steps", "99", "--only-side", "device")
    assert "No rows. What was given as steps or only_side may have left nothing." in done.out
    assert "change is" not in done.err


def test_compare_reads_traces(cli: Cli, runs: Path, tmp_path: Path) -> None:
    """Folders of traces, and a store with one, are compared as their stores are; nothing is left."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        shutil.copy(TRACES / "annotated_operators.json", tmp_path / name / "rank0.json")
    done = cli("compare", tmp_path / "one", tmp_path / "two", *JSON)
    assert done.code == 0
    assert f"{tmp_path / 'one'} was read for this once" in done.err
    rows = json.loads(done.out)
    assert {(row["control_run"], row["test_run"]) for row in rows} == {("one", "two")}
    base = json.loads(cli("compare", f"{runs}:base", f"{runs}:base", *JSON).out)
    assert [row["control_sum_ns"] for row in rows] == [row["control_sum_ns"] for row in base]
    mixed = cli("compare", f"{runs}:base", tmp_path / "two" / "rank0.json", *JSON)
    assert {row["test_run"] for row in json.loads(mixed.out)} == {"rank0"}
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["rank0.json"] * 2
    (tmp_path / "empty").mkdir()
    cli("compare", tmp_path / "empty", tmp_path / "one").fails(1, "No traces in")
    cli("compare", tmp_path / "none", tmp_path / "one").fails(1, "none")


def test_compare_opens_the_store_beside_traces(cli: Cli, tmp_path: Path) -> None:
    """A folder that was ingested is not read again, and nobody says so."""
    shutil.copy(TRACES / "annotated_operators.json", tmp_path / "rank0.json")
    assert cli("ingest", tmp_path).code == 0
    done = cli("compare", tmp_path, tmp_path, *JSON)
    assert done.code == 0
    assert "was read for this once" not in done.err
