"""Tests of ``hta-sql list`` and ``hta-sql describe``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

from hta_sql.cli.describe import find_object
from hta_sql.library.objects import load_library

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def test_list_names_every_analysis(cli: Cli, store: Path) -> None:
    """``list`` shows every analysis, or the runs and ranks of a store."""
    text = cli("list").out
    for analysis in load_library().newest():
        assert analysis.topic in text
        assert f"  {analysis.name} " in text
    names = [row["name"] for row in json.loads(cli("list", "--format", "json").out)]
    assert set(names) == {analysis.base_name for analysis in load_library().analyses}
    assert cli("list", store).out.startswith("runs\n  job  ranks 0-1; 0 profiler steps; 6 events\n")
    rows = list(csv.DictReader(io.StringIO(cli("list", store, "--format", "csv").out)))
    assert [(row["run"], row["rank"], row["event_count"]) for row in rows] == [
        ("job", "0", "3"),
        ("job", "1", "3"),
    ]


def test_describe_says_all_that_the_file_says(cli: Cli) -> None:
    """Every analysis, table and macro is described, with its parameters and columns."""
    library = load_library()
    named = [(found.name, found) for found in (*library.analyses, *library.tables)]
    named += [(f"lib.{macro.name}", macro) for macro in library.macros]
    for called, found in named:
        done = cli("describe", called)
        words = " ".join(done.out.split())
        assert done.code == 0
        documented = [(p.name, p.doc) for p in found.parameters]
        documented += [(c.name, c.doc) for c in found.columns]
        for name, doc in documented:
            assert f"{name} " in words
            assert " ".join(doc.split()) in words
        assert str(found.path) in done.out


def test_describe_prints_the_sql(cli: Cli) -> None:
    """``--sql`` prints the SQL file, and macros are found with or without ``lib.``."""
    text = cli("describe", "temporal_breakdown", "--version", "1", "--sql").out
    assert text == load_library().find("temporal_breakdown").text
    library = load_library()
    assert find_object("lib.merged_intervals", library) is find_object("merged_intervals", library)


def test_describe_an_analysis_with_a_macro_of_its_name(cli: Cli) -> None:
    """If an analysis and a macro share a name, the macro needs the prefix ``lib.``."""
    analysis = load_library().find("idle_gaps")
    assert cli("describe", "idle_gaps").out == cli("describe", "idle_gaps", "--version", "1").out
    assert find_object("idle_gaps", load_library()) is analysis
    assert cli("describe", "lib.idle_gaps").out.startswith("lib.idle_gaps\n")


def test_describe_a_scalar_macro(cli: Cli) -> None:
    """The description of a scalar macro has a return value instead of columns."""
    out = cli("describe", "lib.is_requested").out
    assert "\nReturns\n  is_requested  BOOLEAN  Whether the value is requested" in out
    assert "Columns" not in out


def test_describe_unknown(cli: Cli) -> None:
    """The error for an unknown name suggests the most similar name."""
    cli("describe", "gpu_opz").fails(1, "Did you mean 'gpu_ops'?")
    cli("describe", "temporal_brekdown").fails(1, "'temporal_breakdown'")
    cli("describe", "temporal_breakdown", "--version", "99").fails(1, "no version 99")


def test_describe_starts_each_item_of_a_list_on_its_own_line(cli: Cli) -> None:
    """The verdicts that the header of ``stragglers`` lists are printed one per line."""
    lines = cli("describe", "stragglers").out.splitlines()
    assert "- none: nothing found." in lines
    assert any(line.startswith("  ") and line.endswith("jobs.") for line in lines)
