"""Tests of ``hta-sql gate`` and ``hta-sql baseline``: verdicts, exit codes and output formats."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from hta_sql.comparison.gate import DEFAULT_RULES
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

TRACES = Path(__file__).parents[1] / "traces"
TRACE = TRACES / "annotated_operators.json"
JSON = ("--format", "json")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest equal runs ``base`` and ``same``, and a run ``more`` with a second rank."""
    path = tmp_path_factory.mktemp("gate") / "job.store"
    for run, ranks in (("base", 1), ("same", 1), ("more", 2)):
        ingest_only({rank: str(TRACE) for rank in range(ranks)}, path, run=run)
    return path


def rules(folder: Path, *lines: str) -> Path:
    """Write a rules file with one rule."""
    path = folder / "gate.toml"
    path.write_text("\n".join(("[[rule]]", *lines)), encoding="utf-8")
    return path


def budget(folder: Path, limit: str) -> Path:
    """Write a rules file that sets one limit on the step time."""
    about = ('analysis = "step_accounting"', 'column = "step_ns"', 'aggregate = "mean"')
    return rules(folder, 'name = "step"', *about, limit)


def test_equal_runs_pass(cli: Cli, runs: Path) -> None:
    """Equal runs pass the default rules, except that a rule without values is skipped."""
    done = cli("gate", "--baseline", f"{runs}:base", "--candidate", f"{runs}:same", *JSON)
    assert done.code == 0
    told = json.loads(done.out)
    assert told["verdict"] == "passed"
    assert told["comparability"]["level"] == "comparable"
    assert [(rule["name"], rule["verdict"]) for rule in told["rules"]] == [
        ("step time", "passed"),
        ("peak memory", "skipped"),
        ("exposed communication", "passed"),
        ("utilization", "passed"),
    ]
    assert told["rules"][0]["rows"][0]["difference"] == 0


def test_a_broken_budget_fails(cli: Cli, runs: Path, tmp_path: Path) -> None:
    """If a limit is exceeded, the exit code is 1, and every output format reports it."""
    call = ("gate", "--baseline", f"{runs}:base", "--candidate", f"{runs}:same")
    file = budget(tmp_path, "max = 100000")
    files = [tmp_path / name for name in ("gate.xml", "gate.md", "gate.json")]
    done = cli(*call, "--rules", file, *(part for path in files for part in ("-o", str(path))))
    assert done.code == 1
    assert done.out.splitlines()[0] == "base ▸ same: comparable"
    assert "failed: step: 200.000 µs ▸ 200.000 µs" in done.out
    assert "the limit is at most 100.000 µs" in done.out
    assert done.out.splitlines()[-1] == "Gate failed: 1 rule, 1 failed."
    (suite,) = ET.parse(files[0]).getroot()  # noqa: S314 - ours
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "2",
        "failures": "1",
        "errors": "0",
    }
    assert [case.get("name") for case in suite] == ["comparability", "step"]
    failure = suite[1].find("failure")
    assert failure is not None
    assert "at most 100.000 µs" in (failure.get("message") or "")
    assert files[1].read_text(encoding="utf-8").startswith("### Gate failed: 1 rule, 1 failed.")
    assert json.loads(files[2].read_text(encoding="utf-8"))["verdict"] == "failed"


def test_too_few_samples_are_inconclusive(cli: Cli, runs: Path, tmp_path: Path) -> None:
    """With too few samples, the exit code is 3 and JUnit reports an error."""
    file = budget(tmp_path, "max_increase_pct = 5\nmin_samples = 3")
    call = ("gate", "--baseline", f"{runs}:base", "--candidate", f"{runs}:same", "--rules", file)
    done = cli(*call, "--format", "junit")
    assert done.code == 3
    case = ET.fromstring(done.out).find("testsuite/testcase/error")  # noqa: S314 - ours
    assert case is not None
    assert case.get("message") == "only 1 sample; 3 are required"


def test_a_difference_has_to_be_allowed(cli: Cli, runs: Path, tmp_path: Path) -> None:
    """If runs differ in ranks, the gate is inconclusive unless ``--allow ranks`` is passed."""
    file = rules(
        tmp_path,
        *('analysis = "rank_health"', 'column = "event_count"', 'aggregate = "sum"'),
        "max_increase_pct = 5",
    )
    call = ("gate", "--baseline", f"{runs}:base", "--candidate", f"{runs}:more", "--rules", file)
    done = cli(*call)
    assert done.code == 3
    assert "but the runs differ in ranks" in done.out
    assert cli(*call, "--allow", "ranks").code == 1


def test_an_unknown_fact_is_named(cli: Cli, runs: Path, tmp_path: Path) -> None:
    """``--allow`` refuses an unknown fact and suggests a similar one."""
    call = ("gate", "--baseline", f"{runs}:base", "--candidate", f"{runs}:same")
    call_rules = ("--rules", budget(tmp_path, "max = 1"), "--allow", "rnks")
    cli(*call, *call_rules).fails(2, "no fact 'rnks'. Did you mean 'ranks'?")


def test_usage_errors_name_file_and_rule(cli: Cli, runs: Path, tmp_path: Path) -> None:
    """A usage error ends with exit code 2 and names the file and the rule."""
    call = ("gate", "--baseline", f"{runs}:base", "--candidate", f"{runs}:same")
    file = rules(tmp_path, 'analysis = "kpis"', 'column = "step"', "max = 1")
    cli(*call, "--rules", file).fails(2, str(file), "rule 1", "Did you mean 'step_ns'?")
    cli(*call, "-o", tmp_path / "x.pdf").fails(2, "ends in .txt, .json, .xml, .md")
    cli("gate", "--baseline", "a.store", "--candidate", f"{runs}:nope").fails(2, "no run 'nope'")


def test_the_rules_can_be_printed(cli: Cli) -> None:
    """``--show-rules`` prints the file with the default rules."""
    assert cli("gate", "--show-rules").out == DEFAULT_RULES.read_text(encoding="utf-8")


def test_a_baseline_is_what_it_was(cli: Cli, tmp_path: Path) -> None:
    """A baseline refers to the content of a run: if the run's content changes, the gate fails."""
    traces, store = tmp_path / "traces", tmp_path / "job.store"
    traces.mkdir()
    shutil.copy(TRACE, traces / "rank0.json")
    for run in ("base", "change"):
        ingest_only(traces, store, run=run)
    assert cli("baseline", "set", "main", f"{store}:base").code == 0
    listed = cli("baseline", "list", store).out.split("\t")
    assert listed[:3] == ["main", "base", "."]
    file = budget(tmp_path, "max_increase_pct = 5")
    call = ("gate", "--baseline", "main", "--candidate", f"{store}:change", "--rules", file)

    ingest_only(traces, store, run="base", force=True)
    assert cli(*call).code == 0
    text = TRACE.read_text(encoding="utf-8")
    (traces / "rank0.json").write_text(text.replace("aten::addmm", "aten::addmn"))
    ingest_only(traces, store, run="base")
    cli(*call).fails(1, "'main'", "ingested again with different content", "baseline set main")
    cli("gate", "--baseline", "mian", "--candidate", f"{store}:change").fails(
        1, "No baseline 'mian'", "Did you mean 'main'?"
    )
    assert cli("baseline", "remove", "main", store).code == 0
    assert cli("baseline", "list", store).out == ""


def test_names_may_stand_in_a_file_of_their_own(cli: Cli, runs: Path, tmp_path: Path) -> None:
    """Baselines can be stored in a separate file instead of the store."""
    file = tmp_path / "baselines.json"
    assert cli("baseline", "set", "main", f"{runs}:base", "--file", file).code == 0
    done = cli(
        *("gate", "--baseline", "main", "--baselines", file, "--candidate", f"{runs}:same"),
        *("--rules", budget(tmp_path, "max_increase_pct = 5"), *JSON),
    )
    assert json.loads(done.out)["baselines"][0]["run"] == "base"
    cli("baseline", "set", "no name", f"{runs}:base").fails(1, "'no name' is not a valid name")
    file.write_text("{}", encoding="utf-8")
    cli("baseline", "list", file).fails(1, "is not a baselines file")
