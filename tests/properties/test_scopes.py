"""Runs and ranks are isolated: a query of one of them returns its part of the whole answer.

A join without the run, a window without the rank, or an ignored selection mixes rows of two runs or
ranks in only one of the two answers.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.library.objects import load_library
from tests.properties.test_recomputed import CASES, job

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

__all__ = ["job"]

OF_NO_RUN = {"trace_diff", "kpi_trends"}
"""Analyses that combine several runs: two runs, or a run and the ones before it."""

OF_SEVERAL_RANKS = {
    "gpu_timeline",
    "timeline",
    "straggler_metric",
    "potential_stragglers",
    "advice",
}
"""Analyses whose rows for a rank depend on other ranks."""

WITHOUT_ROWS = {
    *("collective_mismatches", "p2p_pairs", "pipeline_stages", "special_operators", "slow_links"),
    *("all_to_all_traffic", "expert_load", "expert_parallel", "links", "graph_kernels"),
    *("collective_history", "kernel_counters", "serving_roofline"),
}
"""Analyses without rows for these jobs, which have no sends, no optimizer and so on."""

OF_OTHER_FILES = ("cluster_", "snapshot_", "execution_trace_", "hang", "dump_")
"""Name prefixes of the analyses that need files which these jobs do not have."""

OPTIONS: dict[str, dict[str, Any]] = {name: options for name, options, _ in CASES.values()}

SEED = 10

OTHER_SEEDS = {
    "straggler_metric": 14,
    **dict.fromkeys(("iteration_layers", "serving_comparison", "serving_kinds"), 11),
}
"""Seeds for analyses without rows for the job of ``SEED``."""

ANALYSES = [analysis.base_name for analysis in load_library().newest()]


@cache
def options_of(name: str) -> dict[str, Any]:
    """Return the options of an analysis' recomputation, with the last step included."""
    taken = {parameter.name for parameter in load_library().find(name).parameters}
    last = {"include_last_profiler_step": True} if "include_last_profiler_step" in taken else {}
    return {**OPTIONS.get(name, {}), **last}


def rows(store: TraceStore, name: str, **scope: Any) -> list[dict[str, Any]]:
    """Return the rows of an answer."""
    found: list[dict[str, Any]] = store.run(name, **options_of(name), **scope).arrow().to_pylist()
    return found


def check_isolation(store: TraceStore, name: str) -> int:
    """Check that single runs and ranks return their part of the answer; return its row count."""
    whole = rows(store, name)
    columns = {column.name for column in load_library().find(name).columns}
    if "run" in columns and name not in OF_NO_RUN:
        for run in ("a", "b.run-2"):
            assert rows(store, name, runs=[run]) == [row for row in whole if row["run"] == run], run
    if "rank" in columns and name not in OF_SEVERAL_RANKS:
        for rank in (0, 1, 3):
            of_rank = [row for row in whole if row["rank"] == rank]
            assert rows(store, name, ranks=[rank]) == of_rank, rank
    return len(whole)


@pytest.mark.parametrize(
    ("job", "name"), [(OTHER_SEEDS.get(name, SEED), name) for name in ANALYSES], indirect=["job"]
)
def test_runs_and_ranks_keep_to_themselves(job: tuple[int, TraceStore], name: str) -> None:
    """A run or rank that is queried alone has its rows of the whole answer, in the same order."""
    _, store = job
    found = check_isolation(store, name)
    assert found or name.startswith(OF_OTHER_FILES) or name in WITHOUT_ROWS
