"""Partitioned queries, rank by rank or on an executor, return the answer of a single query."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.library.objects import load_library
from hta_sql.store.query import distributed, execution, partitions
from hta_sql.store.query.partitions import unsplit_reason
from tests.properties.test_recomputed import job
from tests.properties.test_scopes import SEED, options_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hta_sql.store.query.trace_store import TraceStore

__all__ = ["job"]

LIBRARY = load_library()
APART = [a.base_name for a in LIBRARY.newest() if a.facts.get("Ranks") == "independent"]
ALL = sorted(a.base_name for a in LIBRARY.newest())
FEW = {"modules", "memory_curve", "call_stack", "gpu_kernels_by_name", "trace_diff"}
"""Analyses that cover each kind of partitioning; the other analyses are slow tests."""

SCOPES: tuple[dict[str, Any], ...] = ({}, {"runs": ["b.run-2"]}, {"ranks": [0, 3]})


@pytest.mark.parametrize("job", [SEED], indirect=True)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[] if n == "modules" else [pytest.mark.slow(reason="large")])
        for n in APART
    ],
)
def test_ranks_apart_are_the_whole(
    job: tuple[int, TraceStore], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Querying rank by rank gives the same rows and row order, also for selected runs or ranks."""
    _, store = job
    whole = [store.run(name, **options_of(name), **scope).arrow() for scope in SCOPES]
    assert whole[0].num_rows
    monkeypatch.setattr(execution, "APART_EVENTS", 1)
    for scope, expected in zip(SCOPES, whole, strict=True):
        assert store.run(name, **options_of(name), **scope).arrow().equals(expected), scope


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadPoolExecutor]:
    """Return an executor of two threads, with one run or rank per task."""
    monkeypatch.setattr(partitions, "LEAST_EVENTS", 1)
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.mark.parametrize("job", [SEED], indirect=True)
@pytest.mark.parametrize("large", [1 << 30, 0], ids=["as rows", "as files"])
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in FEW else [pytest.mark.slow(reason="large")]) for n in ALL],
)
def test_an_executor_gives_the_whole(
    job: tuple[int, TraceStore],
    name: str,
    large: int,
    executor: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An executor gives the same types, rows and order, whether it returns rows or writes files."""
    _, store = job
    monkeypatch.setattr(distributed, "LARGE_BYTES", large)
    taken = {parameter.name for parameter in LIBRARY.find(name).parameters}
    for scope in (SCOPES[0], SCOPES[2]):
        if taken.issuperset(scope):
            expected = store.run(name, **options_of(name), **scope).arrow()
            found = store.run(name, executor=executor, **options_of(name), **scope)
            is_parted = unsplit_reason(LIBRARY.find(name), LIBRARY) is None
            assert bool(found.paths) == (is_parted and not large)
            assert all(Path(path).is_file() for path in found.paths)
            assert found.arrow().equals(expected), scope
            assert found.arrow().schema.equals(expected.schema)


def test_there_are_some() -> None:
    """Expensive analyses can be partitioned. The few that cannot be state the reason."""
    assert {"idle_causes", "modules", "operator_table"} <= set(APART)
    whole = {name: unsplit_reason(LIBRARY.find(name), LIBRARY) for name in ALL}
    assert {name: why for name, why in whole.items() if why} == {
        "jobs": "the table runs contains tags, which can change",
        "kpi_trends": "a run is compared with earlier runs",
        **dict.fromkeys(
            (
                *("comparability", "comparison", "predictions", "serving_comparison"),
                *("snapshot_diff", "trace_diff"),
            ),
            "its rows combine several runs",
        ),
    }


def test_tasks_hold_whole_runs_or_groups_of_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small runs share a task. A large run is split only for analyses with independent ranks."""
    monkeypatch.setattr(partitions, "LEAST_EVENTS", 10)
    sizes = [("a", 0, 4), ("b", 0, 6), ("c", 0, 6), *(("d", rank, 5) for rank in range(5))]
    runs = [{"runs": ["a", "b"]}, {"runs": ["c"]}]
    whole = partitions.tasks(LIBRARY.find("kpis"), sizes)
    assert whole == [*runs, {"runs": ["d"]}]
    apart = partitions.tasks(LIBRARY.find("modules"), sizes)
    groups = ([0, 1], [2, 3], [4])
    assert apart == [*runs, *({"runs": ["d"], "ranks": ranks} for ranks in groups)]


def test_large_jobs_are_a_few_tasks() -> None:
    """A thousand ranks become a few tasks, not a thousand."""
    sizes = [("job", rank, 250_000) for rank in range(1000)]
    assert len(partitions.tasks(LIBRARY.find("operator_table"), sizes)) == 67
