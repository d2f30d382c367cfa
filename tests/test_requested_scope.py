"""Tests that a run, rank or step that does not exist is an error that lists the existing ones."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from hta_sql import ParameterError, RankError, TraceStore
from hta_sql.store.query.requested_scope import check_scope

Call = Callable[..., Any]


def host_step(number: int) -> dict[str, Any]:
    """Return the annotation of a profiler step."""
    named = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}"}
    return {**named, "pid": 1, "tid": 1, "ts": 1000 * number, "dur": 900}


@pytest.fixture
def store(ingest_trace: Callable[..., TraceStore]) -> TraceStore:
    """Return a store of a run with steps 0 to 3, one with step 7 in rank 5, and one without steps."""
    ingest_trace([host_step(number) for number in range(4)], run="a")
    ingest_trace({5: [host_step(7)]}, run="b")
    work = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    return ingest_trace([work], run="bare")


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda store, **given: store.run("host_accounting", **given), id="run"),
        pytest.param(lambda store, **given: store.head("host_accounting", 3, **given), id="head"),
        pytest.param(lambda store, **given: store.host_accounting(**given), id="by name"),
    ],
)
def test_an_unknown_step_is_an_error_that_lists_the_steps(store: TraceStore, call: Call) -> None:
    """A step must be in one of the requested runs."""
    there = r"^No step 9; available steps: 0-3 in run a; 7 in run b\.$"
    with pytest.raises(ParameterError, match=there):
        call(store, steps=[1, 9])
    with pytest.raises(ParameterError, match=r"^No step 7; available steps: 0-3 in run a\.$"):
        call(store, runs=["a"], steps=7)
    with pytest.raises(ParameterError, match=r"^No step 0; the trace has no steps\.$"):
        call(store, runs=["bare"], steps=[0])
    assert call(store, steps=[7])


def test_a_rank_must_be_in_a_requested_run(store: TraceStore) -> None:
    """A rank of another run is an error, because no row could be about it."""
    with pytest.raises(RankError, match=r"^No rank 5; available ranks: 0 in run a\.$"):
        store.run("host_accounting", runs=["a"], ranks=[5])
    with pytest.raises(RankError, match="No rank 5"):
        store.table("cpu_ops", runs=["a"], ranks=[5])
    assert len(store.run("host_accounting", ranks=[5]))


def test_an_executor_does_not_skip_the_check(store: TraceStore) -> None:
    """The tasks of an executor do not check their part of the scope; the call does."""
    with ThreadPoolExecutor(1) as pool, pytest.raises(ParameterError, match="No step 9"):
        store.run("temporal_breakdown", steps=[9], executor=pool)


def test_an_unknown_run_does_not_list_thousands_of_others() -> None:
    """The error about an unknown run lists the first twenty runs, and counts the others."""
    ranks = [(f"run{number:04}", 0, 1) for number in range(2_000)]
    opened: Any = SimpleNamespace(opened=lambda: SimpleNamespace(ranks=ranks))
    with pytest.raises(RankError, match=r"run0019 and 1980 more\.$"):
        check_scope("job.store", opened, {"runs": ["run9999"]})
