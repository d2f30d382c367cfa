"""Tests of gate rules: how they are parsed, and errors that are raised before a store is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hta_sql.comparison.gate import DEFAULT_RULES, Rule, read_rules
from hta_sql.errors import ParameterError

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 'analysis = "step_accounting"\ncolumn = "compute_ns"\n'


def test_a_file_says_rules(tmp_path: Path) -> None:
    """Each [[rule]] table in the file is a rule, by default named after what it checks."""
    path = tmp_path / "gate.toml"
    path.write_text(
        'allow = ["world size"]\n[[rule]]\n' + ROWS + "where = {rank = 0}\nmax_increase_pct = 3\n"
    )
    read = read_rules(path)
    assert read.allow == ("world size",)
    (rule,) = read.rules
    assert rule.name == "step_accounting.compute_ns rank = 0"
    assert (rule.limits, rule.unit) == ({"max_increase_pct": 3}, "ns")


def test_there_are_rules_without_a_file() -> None:
    """The default rules, which apply without a file, are valid."""
    assert [rule.name for rule in read_rules(DEFAULT_RULES).rules] == [
        *("step time", "peak memory", "exposed communication", "utilization")
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[rule]", "not valid TOML"),
        ("", "the file has no [[rule]] table"),
        ("rules = 1", "no key 'rules'. Did you mean 'rule'?"),
        ("rule = 1", "the file has no [[rule]] table"),
        ("allow = 'x'\n[[rule]]", "allow must be a list"),
        ('[[rule]]\nanalysis = "kpis"', "rule 1: the key 'column' is missing"),
        (
            '[[rule]]\nname = "a"\nanalysis = "kpi"\ncolumn = "x"\nmax = 1',
            "rule 1 ('a'): No analysis",
        ),
        ('[[rule]]\nanalysis = "kpis"\ncolumn = "step_n"\nmax = 1', "Did you mean 'step_ns'?"),
        ('[[rule]]\nanalysis = "kpis"\ncolumn = "device_name"\nmax = 1', "is not numeric"),
        ("[[rule]]\n" + ROWS, "the rule has no limit"),
        ("[[rule]]\n" + ROWS + "max_increase = -1", "must not be negative"),
        ("[[rule]]\n" + ROWS + "max_increase = nan", "max_increase must be a number"),
        ("[[rule]]\n" + ROWS + "max = true", "max must be a number"),
        ("[[rule]]\n" + ROWS + "max_increase_pc = 1", "Did you mean 'max_increase_pct'?"),
        ("[[rule]]\n" + ROWS + "max = 1\nwhere = {rnak = 1}", "Did you mean 'rank'?"),
        (
            "[[rule]]\n" + ROWS + 'max = 1\nwhere = {rank = "0"}',
            "rank has type INTEGER, which does not match '0'",
        ),
        (
            "[[rule]]\n" + ROWS + "max = 1\nwhere = {rank = true}",
            "rank has type INTEGER, which does not match True",
        ),
        ("[[rule]]\n" + ROWS + 'max = 1\naggregate = "avg"', "no aggregate 'avg'"),
        ("[[rule]]\n" + ROWS + 'max = 1\nby = ["rnk"]', "Did you mean 'rank'?"),
        ("[[rule]]\n" + ROWS + "max = 1\nmin_samples = 0", "min_samples"),
        ("[[rule]]\n" + ROWS + "max = 1\nparameters = {steps = 'a'}", "steps must be an integer"),
        ("[[rule]]\n" + ROWS + 'max = 1\nparameters = {runs = ["a"]}', "must not contain runs"),
        (("[[rule]]\n" + ROWS + "max = 1\n") * 2, "rule 2: another rule is already named"),
        ('[[rule]]\nanalysis = "trace_diff"\ncolumn = "diff_count"\nmax = 1', "use comparison"),
        (
            '[[rule]]\nanalysis = "comparison"\ncolumn = "diff_pct"\nmax_increase = 1',
            "set max or min on diff_pct",
        ),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str, tmp_path: Path) -> None:
    """The error names the file and the problem, with the nearest valid name if there is one."""
    path = tmp_path / "gate.toml"
    path.write_text(text)
    with pytest.raises(ParameterError) as raised:
        read_rules(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert words in str(raised.value)


def test_a_rule_in_python_is_checked_too() -> None:
    """A rule that is created in Python is validated by its constructor."""
    with pytest.raises(ParameterError, match="the rule has no limit"):
        Rule("kpis", "step_ns")
