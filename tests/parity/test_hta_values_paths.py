"""A21 to A26, A30: critical paths in HTA's own tests, by their id in tests/hta_values/ids.py.

HTA excludes host events of zero duration (Q51), and its path ends before a wait of zero weight. Our
path therefore has 23 more events (46 nodes) and one more wait. Without these, the numbers are
HTA's.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hta_sql import TraceAnalysis, TraceStore
from hta_sql.critical_path import CPEdgeType, CPGraph, restore_cpgraph

if TYPE_CHECKING:
    from collections.abc import Iterator

FORWARD = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
WAIT = 1281
"""Event id of the cudaDeviceSynchronize at the end."""


@pytest.fixture
def simple_add(
    jobs_store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[TraceAnalysis, CPGraph]]:
    """Open the job and return it with the graph of A21."""
    monkeypatch.setenv("CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE", "1")
    with TraceAnalysis(store=jobs_store.path, run="hta_cp_simple_add") as job:
        found = job.critical_path_analysis(0, FORWARD, 1, infer_syncs=False)
        assert found is not None
        assert found[1] is True
        yield job, found[0]


def instants(job: TraceAnalysis) -> set[int]:
    """Return the events of zero duration."""
    query = "SELECT event_id FROM events WHERE run = $run AND dur = 0"
    return {event for (event,) in job.store.sql(query, {"run": job.run}).rows()}


def overlay(
    job: TraceAnalysis, graph: CPGraph, folder: Path, **options: Any
) -> list[dict[str, Any]]:
    """Draw the path into the trace and return the events of the new trace."""
    path = job.overlay_critical_path_analysis(0, graph, folder, **options)
    events: list[dict[str, Any]] = json.loads(gzip.decompress(Path(path).read_bytes()))[
        "traceEvents"
    ]
    return events


def critical(events: list[dict[str, Any]]) -> int:
    """Count the events that are marked as critical."""
    return sum(e["ph"] == "X" and e.get("args", {}).get("critical") == 1 for e in events)


def arrows(events: list[dict[str, Any]]) -> Counter[str]:
    """Count the arrow ends by type, and the arrows on the path."""
    ends = [e for e in events if e.get("cat") == "critical_path"]
    counts = Counter(e["args"]["type"].removeprefix("critical_path_") for e in ends)
    counts["critical"] = sum(e["ph"] == "f" and e["args"]["critical"] == 1 for e in ends)
    return counts


def test_a21_the_longest_path(simple_add: tuple[TraceAnalysis, CPGraph]) -> None:
    """Without zero durations and the wait, the path has 315 nodes, 314 edges and 159 events.

    The edges of events 286, 287, 1005, 1051, 1067 and 1275 are tested in
    test_critical_path_parity.py.
    """
    job, graph = simple_add
    no_time = instants(job)
    nodes = [graph.node_list[number] for number in graph.critical_path_nodes]
    lasting = [node for node in nodes if node.ev_idx not in no_time]
    assert (len(nodes), len(nodes) - len(lasting)) == (362, 46)
    assert (lasting[-1].ev_idx, lasting[-1].is_start) == (WAIT, False)
    assert len(lasting[:-1]) == 315
    assert len(graph.critical_path_edges) == len(nodes) - 1
    assert len(graph.critical_path_events_set - no_time - {WAIT}) == 159


def test_a22_all_events_and_edges(
    simple_add: tuple[TraceAnalysis, CPGraph], tmp_path: Path
) -> None:
    """Every edge is drawn as an arrow with two ends, except launch edges of zero weight."""
    job, graph = simple_add
    events = overlay(job, graph, tmp_path, only_show_critical_events=False, show_all_edges=True)
    assert critical(events) == 159 + 23 + 1
    drawn = arrows(events)
    assert drawn.pop("critical") == 314 + 46 + 1
    table = graph.edges_table
    edges = Counter(
        kind
        for kind, weight in zip(
            table.column("edge_type").to_pylist(),
            table.column("weight_ns").to_pylist(),
            strict=True,
        )
        if weight or kind != "kernel_launch_delay"
    )
    assert drawn == {kind: 2 * count for kind, count in edges.items()}


def test_a23_all_events_and_edges_of_the_path(
    simple_add: tuple[TraceAnalysis, CPGraph], tmp_path: Path
) -> None:
    """The arrows on the path are 21 dependencies and launch delays, and the wait."""
    job, graph = simple_add
    events = overlay(job, graph, tmp_path, only_show_critical_events=False)
    assert critical(events) == 159 + 23 + 1
    assert arrows(events)["critical"] == 21 + 1


def test_a24_critical_events_alone(
    simple_add: tuple[TraceAnalysis, CPGraph], tmp_path: Path
) -> None:
    """Only critical events remain, apart from annotations and Python frames."""
    job, graph = simple_add
    events = overlay(job, graph, tmp_path, only_show_critical_events=True)
    kept = {"user_annotation", "python_function"}
    others = [e for e in events if e["ph"] == "X" and e.get("cat") not in kept]
    assert critical(events) == len(others) == 159 + 23 + 1


def test_a25_a_path_with_data_loading(jobs_store: TraceStore, tmp_path: Path) -> None:
    """The number of events with a duration on the path is within 1 % of HTA's.

    HTA's overlay of this trace has 624 events.
    """
    with TraceAnalysis(store=jobs_store.path, run="hta_cp_simple_add") as job:
        found = job.critical_path_analysis(0, "", 0, ["data_load"], infer_syncs=False)
        assert found is not None
        events = overlay(job, found[0], tmp_path)
        assert critical(events) == len(found[0].critical_path_events_set)
        lasting = [
            e
            for e in events
            if e["ph"] == "X" and e.get("args", {}).get("critical") == 1 and e["dur"] > 0
        ]
        assert len(lasting) == pytest.approx(624, rel=0.01)


def test_a26_summary_breakdown_and_saving(jobs_store: TraceStore, tmp_path: Path) -> None:
    """Waits have zero weight, each edge has a breakdown row, and a saved graph is restored."""
    with TraceAnalysis(store=jobs_store.path, run="hta_cp_alexnet") as job:
        found = job.critical_path_analysis(0, FORWARD, 1, infer_syncs=False)
        assert found is not None
        graph, success = found
        back = restore_cpgraph(graph.save(tmp_path / "graph"), None, 0)
    assert success
    edges = [graph.edges.edge(at) for at in range(len(graph.edges))]
    waits = [edge.weight for edge in edges if edge.type is CPEdgeType.SYNC_DEPENDENCY]
    assert waits
    assert set(waits) == {0}
    assert len(graph.summary()) == 5
    breakdown = graph.get_critical_path_breakdown()
    assert breakdown is not None
    assert len(breakdown) == len(graph.critical_path_edges)
    assert not breakdown["bound_by"].isna().any()
    kept = back.get_critical_path_breakdown()
    assert kept is not None
    assert kept.equals(breakdown)
    for one in (graph, back):
        assert one.number_of_nodes() == graph.number_of_nodes()
        assert one.number_of_edges() == graph.number_of_edges()


def test_a30_an_annotation_that_is_not_there(jobs_store: TraceStore) -> None:
    """A missing annotation returns None instead of raising an exception."""
    with TraceAnalysis(store=jobs_store.path, run="hta_cp_simple_add") as job:
        assert job.critical_path_analysis(0, "no such annotation", 0) is None
