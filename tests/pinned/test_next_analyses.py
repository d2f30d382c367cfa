"""Tests that the analysis behind a recommendation has rows: nobody is sent to an empty table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql.cli.advice import ranks_of
from hta_sql.library.objects import load_library
from hta_sql.library.sqltext import call
from tests.pinned.answers import ADVICE, JOBS, opened, write_runs
from tests.pinned.jobs import make_catalog
from tests.shared_stores import made_once

if TYPE_CHECKING:
    from typing import Any

SHARED = Path(__file__).parents[3] / "shared" / "traces"
NO_TRACES = ("malformed", "mosaic_memory_snapshot", "nsys_sqlite", "pftrace_attention_gym")
SEVERAL_JOBS = ("torch_cpu", "torch_profile_luatil", "param_execution_trace", "hta_memory_analysis")
FOLDERS = [
    path.name
    for path in sorted(SHARED.iterdir() if SHARED.is_dir() else ())
    if path.is_dir() and path.name not in (*NO_TRACES, *SEVERAL_JOBS)
]


def scope_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the command that a recommendation prints."""
    ranks = ranks_of(row)
    return {"runs": [row["run"]], **({"ranks": ranks} if ranks else {})}


@pytest.mark.parametrize("place", [JOBS, ADVICE])
def test_recommendations_lead_to_rows(place: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """On synthetic and recorded jobs, each next analysis has rows in the scope of its command."""

    def make(store: Path) -> None:
        make_catalog(store.parent, write_runs(place, store.parent / "traces"))

    folder = made_once(tmp_path_factory, f"pinned_{place}", make).parent
    library = load_library()
    rules, empty = set(), []
    with opened(folder) as con:
        found = con.sql("FROM advice").to_arrow_table().to_pylist()
        for row in found:
            if row["is_worst"]:
                rules.add(row["rule"])
                name = library.find(row["next_analysis"]).name
                query = call(name, {key: str(value) for key, value in scope_of(row).items()})
                if not con.execute(f"{query} LIMIT 1").fetchall():
                    empty.append((row["run"], row["rule"], query))
    assert len(rules) > 5
    assert empty == []


@pytest.mark.slow(reason="large")
@pytest.mark.parametrize("folder", FOLDERS)
def test_recommendations_for_recorded_jobs_lead_to_rows(folder: str, tmp_path: Path) -> None:
    """The same on the public traces."""
    store = hta_sql.ingest(SHARED / folder, tmp_path / "store")
    for row in store.run("advice").records():
        if row["is_worst"]:
            assert store.run(row["next_analysis"], **scope_of(row)).rows(), row["rule"]
