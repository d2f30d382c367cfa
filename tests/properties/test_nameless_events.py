"""Events without a name are counted like any others; analyses list them under the empty name."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.traces.compiled import SWITCH
from tests.ingestion.small_trace import EVENTS, Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from hta_sql.store.query.trace_store import TraceStore

STAND_IN = "!"
"""An unknown name to use in place of a missing one; like the empty name, it sorts first."""

STEPS = 4


def trace(name: str | None, *, is_missing: bool = False) -> list[Event]:
    """Return steps in which every second event of each kind has the given name, or no name."""
    events = []
    for step in range(STEPS):
        for event in json.loads(json.dumps(EVENTS)):
            later = event | {"ts": event["ts"] + 100 * step}
            if event["name"].startswith("ProfilerStep"):
                events.append(later | {"name": f"ProfilerStep#{step}"})
                continue
            events += [later, later | {"ts": later["ts"] + 40, "name": name}]
            if is_missing:
                del events[-1]["name"]
    return events


@pytest.fixture(params=["1", "0"], ids=["compiled", "SQL"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Select the compiled reader, then the SQL one. Without a compiled library, both are SQL."""
    monkeypatch.setenv(SWITCH, request.param)
    return str(request.param)


def rows_of(store: TraceStore, name: str) -> list[str]:
    """Return the rows of an analysis as strings, with placeholders for missing names and times."""

    def plain(value: Any) -> str:
        text = repr(value).replace(STAND_IN, "").replace("''", "-").replace("None", "-")
        return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "time", text)

    return sorted(" ".join(map(plain, row)) for row in store.run(name).rows())


@pytest.mark.parametrize("is_missing", [False, True], ids=["null", "missing"])
def test_an_event_without_a_name_is_kept_with_the_empty_name(
    ingest_trace: Callable[..., TraceStore],
    is_missing: bool,
    reader: str,
) -> None:
    """Both readers store a missing name as the empty name, in every table that has names."""
    store = ingest_trace(trace(None, is_missing=is_missing), store=f"{reader}.store")
    counted = "SELECT table_name, count(*) FROM events WHERE name = '' GROUP BY ALL"
    assert dict(store.sql(counted).rows()) == {
        "cpu_ops": 2 * STEPS,
        "runtime_calls": 2 * STEPS,
        "flows": 2 * STEPS,
        "gpu_ops": 2 * STEPS,
        "python_calls": STEPS,
        "counters": STEPS,
        "other_events": 4 * STEPS,
    }
    assert store.sql("SELECT count(*) FROM quarantine").rows() == [(0,)]


def test_analyses_count_them_as_they_count_an_unknown_name(
    ingest_trace: Callable[..., TraceStore],
) -> None:
    """Every analysis returns the same rows as for an unknown name, except for the name."""
    nameless = ingest_trace(trace(None), store="nameless.store")
    named = ingest_trace(trace(STAND_IN), store="named.store")
    differ = [
        analysis.base_name
        for analysis in nameless.library.newest_by_topic()
        if rows_of(nameless, analysis.base_name) != rows_of(named, analysis.base_name)
    ]
    assert not differ
