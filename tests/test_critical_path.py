"""Tests of the critical-path graph: methods, what-if, saved files, trace overlay and command."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql.cli import main
from hta_sql.critical_path import (
    CPEdgeType,
    CPGraph,
    critical_path,
    critical_paths,
    restore_cpgraph,
)
from hta_sql.critical_path.tables import path_table, summary_table, what_if_table
from hta_sql.errors import ParameterError, RankError, StoreError
from hta_sql.hta.trace_analysis import TraceAnalysis
from tests.conftest import TRACES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hta_sql.store.query.trace_store import TraceStore


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest a trace with a launch, its kernel, and a call that waits for the kernel."""
    trace = {0: str(TRACES / "path_stream_sync.json")}
    with hta_sql.ingest(trace, tmp_path_factory.mktemp("waiting") / "s", run="run") as opened:
        yield opened


@pytest.fixture
def graph(waiting: TraceStore) -> CPGraph:
    """Return the critical-path graph of the trace."""
    found = critical_path(waiting, 0)
    assert found is not None
    return found


def test_the_path_goes_over_the_kernel_and_back(graph: CPGraph) -> None:
    """The path takes 65 µs: mm 10, launch delay 15, gemm 25, then 10 and 5 in item.

    The host alone would take only 50 µs.
    """
    assert graph.critical_path_nodes == [0, 1, 3, 7, 8, 9, 10, 11]
    assert graph.critical_path_length_ns == 65_000
    assert graph.critical_path_events_set == {0, 1, 2, 3, 4, 6}
    assert [e.weight for e in graph.critical_path_edges] == [10, 15, 25, 0, 10, 0, 5]
    assert len(graph.critical_path_edges_set) == len(graph.critical_path_nodes) - 1


def test_the_breakdown_has_a_row_per_edge(graph: CPGraph) -> None:
    """The table has HTA's columns, with one row per edge on the path."""
    table = graph.get_critical_path_breakdown()
    assert table is not None
    assert list(table.columns) == [
        *("event_idx", "duration", "type", "s_name", "cat", "pid", "tid", "stream", "index"),
        "bound_by",
    ]
    shown = table[["duration", "s_name", "cat", "bound_by"]].astype(object)
    assert shown.where(shown.notna(), None).to_numpy().tolist() == [
        [10.0, "aten::mm", "cpu_op", "cpu_bound"],
        [15.0, None, None, "gpu_kernel_launch_overhead"],
        [25.0, "gemm", "kernel", "gpu_compute_bound"],
        [0.0, None, None, ""],
        [10.0, "aten::item", "cpu_op", "cpu_bound"],
        [0.0, "aten::view", "cpu_op", "cpu_bound"],
        [5.0, "aten::item", "cpu_op", "cpu_bound"],
    ]
    shares = graph.summary()
    assert shares.to_dict() == {
        "": 0,
        "cpu_bound": pytest.approx(100 * 25 / 65),
        "gpu_compute_bound": pytest.approx(100 * 25 / 65),
        "gpu_kernel_launch_overhead": pytest.approx(100 * 15 / 65),
    }


def test_nodes_edges_and_events_are_found_from_each_other(graph: CPGraph) -> None:
    """HTA's methods convert between nodes, edges and events in both directions."""
    start, end = graph.get_nodes_for_event(2)
    assert start is not None
    assert end is not None
    assert (start.idx, start.ts, start.is_start) == (3, 25.0, True)
    assert (end.idx, end.ts, end.is_start) == (7, 50.0, False)
    assert graph.get_nodes_for_event(5) == (None, None)
    delay = graph.edges[1, 3]["object"]
    assert (delay.type, delay.weight) == (CPEdgeType.KERNEL_LAUNCH_DELAY, 15)
    assert graph.get_events_for_edge(delay) == (1, 2)
    assert graph.get_event_attribution_for_edge(delay) is None
    inside = graph.edges[2, 4]["object"]
    assert graph.get_event_attribution_for_edge(inside) == 0
    assert [(e.begin, e.end) for e in graph.get_edges_attributed_to_event(3)] == [
        (5, 6),
        (8, 9),
        (10, 11),
    ]
    assert graph.node_list[6].is_blocking
    assert graph.number_of_nodes() == len(graph.nodes) == 12
    assert graph.number_of_edges() == len(graph.edges) == len(list(graph.edges)) == 12
    assert {d["weight"] for *_, d in graph.edges(data=True)} == {0, 5, 10, 15, 25}


def test_weights_can_be_changed_and_the_path_found_again(graph: CPGraph) -> None:
    """If the kernel takes only 5 µs, the path is host-bound."""
    graph.edges[3, 7]["weight"] = 5
    assert graph.critical_path()
    assert graph.critical_path_length_ns == 50_000
    assert "gpu_compute_bound" not in graph.summary()
    with pytest.raises(ParameterError, match="weight"):
        graph.edges[3, 7]["weight"] = -1


def test_what_if_recomputes_the_path(graph: CPGraph) -> None:
    """A gemm twice as fast saves 12.5 µs.

    One that is five times as fast saves only 15 µs, because the host then bounds the path.
    """
    twice = graph.what_if(2, name="gemm")
    assert (twice.length_ns, twice.new_length_ns, twice.events) == (65_000, 52_500, 1)
    assert twice.saved_pct == pytest.approx(100 * 12.5 / 65)
    assert graph.what_if(5, kernel_class="computation").saved_ns == 15_000
    assert graph.what_if(2, name="aten::mm").new_length_ns == 60_000
    assert graph.what_if(2, kernel_class="communication").saved_ns == 0
    assert graph.critical_path_length_ns == 65_000
    for wrong in ({"times_faster": 0, "name": "gemm"}, {"times_faster": 2}):
        with pytest.raises(ParameterError, match="what_if"):
            graph.what_if(**wrong)


def test_a_graph_comes_back_from_a_file(graph: CPGraph, tmp_path: Path) -> None:
    """A restored graph has the same nodes, edges, weights and breakdown; a broken file is named."""
    graph.edges[0, 1]["weight"] = 11
    graph.critical_path()
    path = graph.save(str(tmp_path / "new" / "graph"))
    assert path == str(tmp_path / "new" / "graph.zip")
    back = restore_cpgraph(path, None, 0)
    assert back.critical_path_length_ns == 66_000
    assert back.critical_path_edges == graph.critical_path_edges
    assert back.node_list == graph.node_list
    frames = [g.get_critical_path_breakdown() for g in (back, graph)]
    assert frames[0].equals(frames[1])  # type: ignore[union-attr,arg-type]
    (tmp_path / "bad.zip").write_bytes(b"no zip")
    with pytest.raises(StoreError, match=r"bad\.zip"):
        restore_cpgraph(tmp_path / "bad.zip")


def test_windows_without_anything_have_no_path(ingest_trace: Callable[..., TraceStore]) -> None:
    """How a missing path is reported depends on the reason why it is missing.

    An unknown name gives None, an unknown instance is an error, and a rank without host events has
    a graph without a path.
    """
    store = ingest_trace({0: "path_windows.json", 1: "nothing_lasts.json"})
    assert critical_path(store, 0, annotation="nothing") is None
    with pytest.raises(ParameterError, match="instance 7"):
        critical_path(store, 0, annotation="step", first_instance=7)
    empty = critical_path(store, 1)
    assert empty is not None
    assert empty.critical_path() is False
    assert empty.critical_path_nodes == []
    assert empty.get_critical_path_breakdown() is None
    with pytest.raises(ParameterError, match="no critical path"):
        empty.summary()


def step(number: int, ts: int) -> dict[str, Any]:
    """Return a profiler step of 100 µs."""
    about = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}"}
    return {**about, "pid": 1, "tid": 1, "ts": ts, "dur": 100}


def test_windows_say_why_they_have_no_path(
    ingest_trace: Callable[..., TraceStore], caplog: pytest.LogCaptureFixture
) -> None:
    """The log states why a window has no path.

    The possible reasons are: no operator in the window, no such event, an excluded event, and no
    such instance.
    """
    operator = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1}
    operators = [{**operator, "ts": ts, "dur": 10} for ts in (150, 450)]
    steps = [step(1, 0), step(2, 110), step(3, 300)]
    path = ingest_trace([*steps, *operators]).path
    left_out = "by the selected steps, or by include_last_profiler_step=False"
    with TraceAnalysis(store=path) as job:
        found = job.critical_path_analysis(0, "ProfilerStep", 0)
        assert found is not None
        assert (found[0].critical_path_nodes, found[1]) == ([], False)
        assert caplog.messages == [
            "Rank 0 has no host operator in the window, so there is no critical path."
        ]
        caplog.clear()
        found = job.critical_path_analysis(0, "ProfilerStep", 1)
        assert found is not None
        assert found[1]
        assert job.critical_path_analysis(0, "nowhere", 0) is None
        assert job.critical_path_analysis(0, "ProfilerStep#3", 0) is None
        assert caplog.messages == [
            "Rank 0 has no host event with 'nowhere' in the name.",
            f"Rank 0 has 1 host event with 'ProfilerStep#3' in the name, all excluded: {left_out}.",
        ]
        with pytest.raises(ParameterError) as error:
            job.critical_path_analysis(0, "ProfilerStep", 2)
        assert str(error.value) == (
            "There is no instance 2. Rank 0 has 2 host events with 'ProfilerStep' in the name, "
            f"numbered from 0 in time order; 1 more excluded: {left_out}."
        )


def test_the_command_says_why_there_is_no_path(
    ingest_trace: Callable[..., TraceStore], capsys: pytest.CaptureFixture[str]
) -> None:
    """If there is no path, the command states why, for a window as well as for steps."""
    store = str(ingest_trace([step(1, 0)]).path)
    assert main(["critical-path", store, "--annotation", "ProfilerStep"]) == 1
    assert "no host operator of these ranks starts within 'Prof" in capsys.readouterr().err
    assert main(["critical-path", store, "--steps", "7", "--include-last-profiler-step"]) == 1
    assert capsys.readouterr().err == "error: No step 7; available steps: 1 in run run.\n"
    assert main(["critical-path", store]) == 0


def test_no_pair_of_operations_is_compared(ingest_trace: Callable[..., TraceStore]) -> None:
    """The plan finds the preceding operation with an ASOF join instead of comparing all pairs."""
    with ingest_trace("path_stream_sync.json") as store:
        plan = "EXPLAIN (ANALYZE, FORMAT json) FROM critical_path_edges(runs := ['run'])"
        told = "".join(row[1] for row in store.sql(plan).rows())
    assert "ASOF_JOIN" in told
    assert "NESTED_LOOP_JOIN" not in told


def test_tables_cover_all_ranks(ingest_trace: Callable[..., TraceStore]) -> None:
    """The table has one row per rank and bound, longest first; a rank without events has none."""
    store = ingest_trace({0: "path_stream_sync.json", 1: "no_events.json", 3: "path_overlap.json"})
    table = summary_table(critical_paths(store)).to_pylist()
    assert [(r["rank"], r["bound_by"], r["path_ns"], r["edge_count"]) for r in table[:4]] == [
        (0, "cpu_bound", 25_000, 4),
        (0, "gpu_compute_bound", 25_000, 1),
        (0, "gpu_kernel_launch_overhead", 15_000, 1),
        (0, "dependencies", 0, 1),
    ]
    assert {r["rank"] for r in table} == {0, 3}
    assert path_table(critical_paths(store, ranks=[0])).column("name").to_pylist()[:3] == [
        "aten::mm",
        None,
        "gemm",
    ]
    (row,) = what_if_table(critical_paths(store, ranks=[0]), 2, "gemm", None).to_pylist()
    assert (row["path_ns"], row["saved_ns"], row["event_count"]) == (65_000, 12_500, 1)


@pytest.fixture
def analysis(trace_path: Callable[[str], Path], tmp_path: Path) -> Iterator[TraceAnalysis]:
    """Open the trace with HTA's TraceAnalysis class."""
    files = {0: str(trace_path("path_stream_sync.json"))}
    with TraceAnalysis(files, store=tmp_path / "job.store") as opened:
        yield opened


def overlaid(path: str) -> list[dict[str, Any]]:
    """Return the events of an overlaid trace."""
    with gzip.open(path) as file:
        events: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return events


def test_the_path_is_drawn_into_the_trace(analysis: TraceAnalysis, tmp_path: Path) -> None:
    """Events on the path are marked, and the launch delay and the wait are arrows."""
    found = analysis.critical_path_analysis(0, "", None)
    assert found is not None
    graph, success = found
    assert success
    path = analysis.overlay_critical_path_analysis(0, graph, tmp_path / "out")
    assert path == str(tmp_path / "out" / "overlaid_critical_path_path_stream_sync.json.gz")
    events = overlaid(path)
    complete = [e for e in events if e["ph"] == "X"]
    assert len(complete) == 6
    assert all(e["args"]["critical"] == 1 for e in complete)
    arrows = [(e["ph"], e["ts"], e["tid"], e["args"]["type"][14:]) for e in events if "id" in e]
    assert arrows == [
        ("s", 10, 100, "kernel_launch_delay"),
        ("f", 25, 7, "kernel_launch_delay"),
        ("s", 49, 7, "sync_dependency"),
        ("f", 59, 100, "sync_dependency"),
    ]
    path = analysis.overlay_critical_path_analysis(
        0, graph, tmp_path, only_show_critical_events=False, show_all_edges=True
    )
    events = overlaid(path)
    assert sum(e["ph"] == "X" for e in events) == 7
    assert sum(e["ph"] == "f" for e in events) == 12
    assert sum(e["args"]["critical"] for e in events if e["ph"] == "f") == 7
    with pytest.raises(RankError, match="rank 0"):
        analysis.overlay_critical_path_analysis(1, graph, tmp_path)


def test_hta_calls(analysis: TraceAnalysis, monkeypatch: pytest.MonkeyPatch) -> None:
    """The critical-path method handles arguments as HTA does.

    An unknown name gives None, unknown ranks and bad instances are errors, and HTA's environment
    variable adds edges.
    """
    assert analysis.critical_path_analysis(0, "nowhere", 0) is None
    with pytest.raises(RankError, match="5"):
        analysis.critical_path_analysis(5, "", 0)
    with pytest.raises(ParameterError, match="instance_id"):
        analysis.critical_path_analysis(0, "", (2, 1))
    monkeypatch.setenv("CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE", "1")
    found = analysis.critical_path_analysis(0, "aten::", (0, 1), data_load_events=["x"])
    assert found is not None
    assert found[0].number_of_edges() == 12


def test_the_command_answers(
    ingest_trace: Callable[..., TraceStore],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """The command prints summary, path and what-if, and draws a chart; bad options are errors."""
    store = str(ingest_trace("path_stream_sync.json").path)
    assert main(["critical-path", store, "--format", "csv"]) == 0
    assert "run,0,cpu_bound,25000," in capsys.readouterr().out.replace('"', "")
    assert main(["critical-path", store, "--path", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 7
    faster = ["--faster", "2", "--class", "computation", "--format", "csv"]
    assert main(["critical-path", store, *faster]) == 0
    assert ",65000,52500,12500," in capsys.readouterr().out
    chart = tmp_path / "path.svg"
    assert main(["critical-path", store, "--chart", str(chart)]) == 0
    assert "critical path" in chart.read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["critical-path", store, "--faster", "2"]) == 2
    assert "--name" in capsys.readouterr().err
    assert main(["critical-path", store, "--annotation", "no such name"]) == 1
    assert "'no such name'" in capsys.readouterr().err


def test_one_edge_between_two_nodes(ingest_trace: Callable[..., TraceStore]) -> None:
    """Two nodes have at most one edge, even if two rules order them."""
    names = ("path_stream_waits", "path_overlap", "path_launch_lock", "path_backward_thread")
    store = ingest_trace({rank: f"{name}.json" for rank, name in enumerate(names)})
    for graph in critical_paths(store, include_launch_edges=True):
        assert len(set(graph.edges)) == len(graph.edges)
        assert all(begin < end for begin, end in graph.edges)
        assert (graph.edges.weights >= 0).all()


@pytest.mark.parametrize("kinds", [{}, {"include_launch_edges": True, "infer_syncs": False}])
def test_the_graph_has_the_edges_of_the_analysis(
    kinds: dict[str, Any], ingest_trace: Callable[..., TraceStore]
) -> None:
    """The graph has the same edges, in the same order, as the critical_path_edges analysis."""
    store = ingest_trace("path_overlap.json")
    graph = critical_path(store, 0, **kinds)
    assert graph is not None
    assert (
        graph.edges_table.to_pylist()
        == store.run("critical_path_edges", **kinds).arrow().to_pylist()
    )
