"""Equal input gives equal output: ties are broken explicitly, not by the query plan."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from hta_sql.authoring.golden_engine import materialize_derived
from hta_sql.library import sqltext
from hta_sql.library.objects import load_library
from tests.examples import examples
from tests.properties.test_recomputed import job
from tests.properties.test_scopes import ANALYSES, options_of

if TYPE_CHECKING:
    from pathlib import Path

    from hta_sql.store.query.trace_store import TraceStore

__all__ = ["job"]


def answers(con: duckdb.DuckDBPyConnection) -> dict[str, list[Any]]:
    """Materialize all derived tables, and return their rows and those of all analyses."""
    library = load_library()
    materialize_derived(con, library, {about.path for about in library.derived})
    found = {}
    for about in library.derived:
        found[about.base_name] = con.table(f"derived.{about.base_name}").order("ALL").fetchall()
    for name in ANALYSES:
        options = options_of(name)
        call = sqltext.call(library.find(name).name, {key: f"${key}" for key in options})
        found[name] = con.execute(call, options).fetchall()
    return found


@pytest.mark.parametrize("job", [3, *range(examples(1) - 1)], indirect=True)
def test_another_plan_gives_the_same_rows(job: tuple[int, TraceStore], tmp_path: Path) -> None:
    """Rows and order do not depend on the plan, although many events share their times."""
    _, store = job
    found: list[dict[str, list[Any]]] = []
    for setting in ("SET threads = 1", "PRAGMA disable_optimizer"):
        catalog = shutil.copy(store.catalog_path, tmp_path / f"{len(found)}.duckdb")
        with duckdb.connect(catalog, config={"threads": 1}) as con:
            con.execute(setting)
            found.append(answers(con))
    assert found[0] == found[1]
