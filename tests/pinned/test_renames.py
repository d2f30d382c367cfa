"""Renamed columns exist under their new names and have the values that they had under their old ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hta_sql.library.objects import load_library
from tests.pinned.answers import ADVICE, JOBS, Digests
from tests.pinned.renames import lines_of, old_call, old_names, pinned_in

ROOT = Path(__file__).parents[2]

RESPELLED = {
    "advice": {"run", "rule", "title", "next_analysis", "evidence_sql", "finding_id"},
    "idle_causes": {"cause", "message"},
    "kpi_trends": {"kpi"},
    "special_operators": {"kind", "meaning"},
    "timeline": {"part"},
}
"""Columns whose texts tests/pinned/respelled.csv changes; the module renames puts the old spelling back."""


def git(*arguments: str) -> str:
    """Run git in the repository."""
    done = subprocess.run(  # noqa: S603 - our own arguments
        ["git", *arguments],  # noqa: S607
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    return done.stdout.strip()


def revision_of_renames() -> str:
    """Return the commit that last changed the list of renames."""
    try:
        revision = git("log", "-1", "--format=%H", "--", "tests/pinned/renames.csv")
        git("rev-parse", "--verify", f"{revision}^")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no history of the renames here")
    return revision


def test_renames_are_names_of_today() -> None:
    """Each analysis, column and parameter of the list exists under its new name only."""
    analyses = {one.base_name: one for one in load_library().newest()}
    for line in lines_of("renames.csv"):
        if line["analysis"]:
            about = analyses[line["analysis"]]
            names = {column.name for column in about.columns}
            names |= {parameter.name for parameter in about.parameters}
        else:
            names = set(analyses)
        assert line["new"] in names, line
        assert line["old"] not in names, line


@pytest.mark.parametrize("place", [JOBS, ADVICE])
def test_a_renamed_column_keeps_its_pinned_digest(place: str) -> None:
    """The digest of the old name before the commit of the renames is that of the new name after it."""
    revision = revision_of_renames()
    before, after = pinned_in(f"{revision}^", place), pinned_in(revision, place)
    compared = 0
    for call, digests in after.items():
        if (earlier := before.get(old_call(call))) is None:
            continue  # of a later analysis
        analysis = call.removeprefix("FROM ").partition("_v")[0]
        assert _columns(digests, analysis) == _columns(_renamed(earlier, analysis), analysis), call
        compared += 1
    assert compared


def _renamed(digests: Digests, analysis: str) -> Digests:
    new_names = {old: new for new, old in old_names(analysis).items()}
    return {
        f"column {new_names.get(name, name)}": digest
        for what, digest in digests.items()
        if (name := what.removeprefix("column ")) != what
    }


def _columns(digests: Digests, analysis: str) -> Digests:
    respelled = {f"column {name}" for name in RESPELLED.get(analysis, ())}
    return {
        what: digest
        for what, digest in digests.items()
        if what.startswith("column ") and what not in respelled
    }
