"""Equal input gives equal output: ties are broken by something, and not by the engine's plan."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from hta_sql.library import sqltext
from hta_sql.library.objects import load_library
from tests.examples import examples
from tests.properties.test_recomputed import job
from tests.properties.test_scopes import ANALYSES, options_of

if TYPE_CHECKING:
    from pathlib import Path

    from hta_sql.store.trace_store import TraceStore

__all__ = ["job"]


def answers(con: duckdb.DuckDBPyConnection) -> dict[str, list[Any]]:
    """All rows of all analyses."""
    found = {}
    for name in ANALYSES:
        options = options_of(name)
        call = sqltext.call(load_library().find(name).name, {key: f"${key}" for key in options})
        found[name] = con.execute(call, options).fetchall()
    return found


@pytest.mark.parametrize("job", [3, *range(examples(1) - 1)], indirect=True)
def test_another_plan_gives_the_same_rows(job: tuple[int, TraceStore], tmp_path: Path) -> None:
    """In the same order; events of these jobs begin and end at few instants."""
    _, store = job
    catalog = shutil.copy(store.catalog_path, tmp_path / "catalog.duckdb")
    with duckdb.connect(catalog, read_only=True, config={"threads": 1}) as con:
        as_planned = answers(con)
        con.execute("PRAGMA disable_optimizer")
        assert answers(con) == as_planned
