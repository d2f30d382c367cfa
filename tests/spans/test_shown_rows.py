"""Rows of a terminal table can be told apart by the columns that the table shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import hta_sql
from hta_sql.library.objects import load_library
from hta_sql.synthetic import JobSpec, write_job
from hta_sql.text import TABLE_ROWS

ANALYSES = {analysis.base_name: analysis for analysis in load_library().newest()}

NUMBERED = frozenset(
    {"rank", "peer_rank", "step", "position", "stream", "start_ns", "ts", "event_id", "stage"}
)
"""Columns of numbers that identify a row; other numbers are measured."""

KEYS = {
    "idle_causes": {"cause", "name", "relation", "call"},
    "process_group_costs": {"pg_name", "kind", "pg_desc", "part", "collective_count"},
    "blocking_communication": {"pg_name", "kind", "pg_desc", "part"},
    "top_costs": {"cost", "short_name"},
}
"""Analyses of which small jobs have only rows that differ ─▶ columns that tell their rows apart."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest a job of four ranks with stacks, memory events and a straggler."""
    top = tmp_path_factory.mktemp("shown")
    spec = JobSpec(
        ranks=4,
        steps=3,
        layers=2,
        ops_per_layer=3,
        memory_events=True,
        python_stacks=True,
        sync_events=True,
        stragglers={1: 3_000_000},
        gzip=False,
    )
    write_job(top / "job", spec)
    with hta_sql.ingest(top / "job", top / "store", jobs=1) as opened:
        yield opened


def key(row: dict[str, Any], names: list[str]) -> str:
    """Return the values of these columns as text."""
    return repr([row[name] for name in names])


@pytest.mark.parametrize("name", sorted(n for n in ANALYSES if ANALYSES[n].shown))
def test_rows_that_look_alike_differ_only_in_numbers(store: hta_sql.TraceStore, name: str) -> None:
    """Rows with the same shown columns have the same texts in the columns that are not shown."""
    rows: list[dict[str, Any]] = store.run(name).arrow().slice(0, TABLE_ROWS).to_pylist()
    shown = ["run", *ANALYSES[name].shown]
    texts = [c for c in (rows[0] if rows else ()) if any(isinstance(row[c], str) for row in rows)]
    hidden = [c for c in texts if c not in shown and not c.endswith("_code")]
    keys = [c for c in shown if c in texts or c in NUMBERED]
    seen: dict[str, str] = {}
    for row in rows:
        other = key(row, hidden)
        assert seen.setdefault(key(row, [c for c in keys if c in row]), other) == other


@pytest.mark.parametrize("name", KEYS)
def test_columns_that_tell_rows_apart_are_shown(name: str) -> None:
    """Terminal tables show causes with their relation and call, and groups with their names."""
    assert set(ANALYSES[name].shown) >= KEYS[name]
