"""Critical paths of the public jobs equal HTA's, except for explained differences.

HTA ran without its rounding. On the traces that HTA ships for this purpose, its paths equal ours,
with two exceptions:

- first of a burst: if a stream was idle when a kernel was launched, the launch bounds the kernel,
  even if the next launch was already queued when it started. HTA uses the gap after the previous
  kernel or, above 1500 µs, nothing at all.
- copy: the call of a pageable copy returned after the copy had ended. The copy leads to the return
  of the call, which has zero weight (HTA: its whole duration, Q52).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hta_sql.critical_path import CPGraph, critical_path
from tests.parity.jobs import HTA, JOBS

if TYPE_CHECKING:
    from hta_sql import TraceStore

needs_numbers = pytest.mark.skipif(not HTA.is_dir(), reason="HTA's numbers are not here")

LONGER_US = {
    "hta_cp_alexnet": 79.0,  # first of a burst: a Memset 20 µs after its launch
    "hta_cp_simple_add": 49.0,  # likewise, 19 µs
    "hta_cp_event_sync": -9.0,  # copy: a call of 29 µs around a copy that ended 20 µs into it
    "hta_cp_event_sync_multi": 0.0,
}
"""Job ─▶ time by which our path is longer than HTA's [µs]."""

MORE_EDGES = {
    "hta_cp_alexnet": {"kernel_launch_delay": 1},
    "hta_cp_simple_add": {"kernel_launch_delay": 1},
    "hta_cp_event_sync": {"sync_dependency": 1},
    "hta_cp_event_sync_multi": {"kernel_launch_delay": 1},
}
"""Job ─▶ number of edges on or to the device that HTA lacks, by type."""

ON_THE_DEVICE = ("kernel_kernel_delay", "kernel_launch_delay", "sync_dependency")


@needs_numbers
@pytest.mark.parametrize("job", LONGER_US)
def test_paths_are_htas_but_for_what_is_explained(job: str, jobs_store: TraceStore) -> None:
    """The path length and the number of device edges differ from HTA's only as explained."""
    graph = critical_path(jobs_store, 0, job)
    assert graph is not None
    hta = json.loads((HTA / job / "critical_path_full.json").read_text())["0"]
    assert graph.critical_path_length_ns == round(1000 * (hta["cp_weight"] + LONGER_US[job]))
    counts = Counter(graph.edges_table.column("edge_type").to_pylist())
    theirs = {kind: hta["edge_types"].get(f"critical_path_{kind}", 0) for kind in ON_THE_DEVICE}
    more = {kind: counts[kind] - theirs[kind] for kind in ON_THE_DEVICE}
    assert {kind: n for kind, n in more.items() if n} == MORE_EDGES[job]


@needs_numbers
def test_an_annotation_chooses_the_window(jobs_store: TraceStore) -> None:
    """The edges within an annotation have the values that HTA's own test expects."""
    graph = critical_path(
        jobs_store,
        0,
        "hta_cp_simple_add",
        annotation="[param|pytorch.model.alex_net|0|0|0|measure|forward]",
        first_instance=1,
        include_launch_edges=True,
    )
    assert graph is not None

    def node(event: int, side: int) -> int:
        found = graph.get_nodes_for_event(event)[side]
        assert found is not None
        return found.idx

    def edge(begin: tuple[int, int], end: tuple[int, int]) -> tuple[str, float, int | None]:
        found = graph.edges[node(*begin), node(*end)]["object"]
        owner = graph.get_event_attribution_for_edge(found)
        return found.type.value.removeprefix("critical_path_"), found.weight, owner

    # aten::relu_ (286) calls aten::clamp_min_ (287), which calls cudaLaunchKernel (1005).
    assert edge((286, 0), (287, 0)) == ("operator", 15, 286)
    assert edge((287, 0), (1005, 0)) == ("operator", 14, 287)
    assert edge((1005, 0), (1005, 1)) == ("operator", 17, 1005)
    assert edge((1005, 1), (287, 1)) == ("operator", 15, 287)
    assert edge((287, 1), (286, 1)) == ("operator", 32, 286)
    launches = dict(
        jobs_store.sql(
            "SELECT event_id, launch_id FROM gpu_ops WHERE run = 'hta_cp_simple_add'"
        ).rows()
    )
    assert edge((launches[1051], 0), (1051, 0)) == ("kernel_launch_delay", 27, None)
    assert edge((1051, 1), (1067, 0)) == ("kernel_kernel_delay", 7, 1051)
    assert edge((launches[1067], 0), (1067, 0)) == ("kernel_launch_delay", 0, None)
    assert edge((1275, 1), (1281, 1)) == ("sync_dependency", 0, None)


def check(graph: CPGraph) -> None:
    """Assert that a graph has a path, and that no edge or path is longer than the elapsed time."""
    edges, ts = graph.edges, np.array(graph.nodes_table.column("ts").to_pylist(), np.int64)
    assert (edges.begins < edges.ends).all()
    assert (edges.weights >= 0).all()
    assert (edges.weights <= ts[edges.ends] - ts[edges.begins]).all()
    assert len(set(graph.edges)) == len(edges)
    assert bool(graph.critical_path_nodes) == bool(len(edges))
    if len(edges):
        path = graph.critical_path_nodes
        assert graph.critical_path_length_ns <= ts[path[-1]] - ts[path[0]]


@pytest.mark.parametrize("job", JOBS)
def test_every_rank_of_every_job_has_an_answer(job: str, jobs_store: TraceStore) -> None:
    """Every rank of every job has a path, even if HTA crashes on the job."""
    for run in (run for run in jobs_store.runs() if run in {job, f"{job}-capture2"}):
        for rank in jobs_store.ranks(run):
            for options in ({}, {"infer_syncs": False, "include_launch_edges": True}):
                graph = critical_path(
                    jobs_store, rank, run, include_last_profiler_step=True, **options
                )
                assert graph is not None
                check(graph)
