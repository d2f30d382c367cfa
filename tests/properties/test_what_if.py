"""What-if answers of the critical path compared with an exhaustive search of all paths."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hta_sql
from hta_sql.critical_path import CPGraph, critical_path
from tests.examples import examples
from tests.properties.traces import store_of_job

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMES = ("gemm", "gemm_small", "copy", "aten::mm", "")
CLASSES = ("computation", "communication", "memory", None)
TYPES = ("operator", "dependency", "kernel_launch_delay", "kernel_kernel_delay", "sync_dependency")
FACTORS = (1, 2, 3, 1.5, 0.5, 1000)

Edge = dict[str, Any]
Node = dict[str, Any]


def length_of(edges: Iterable[Edge]) -> int:
    """Return the length of the longest path by exhaustive search."""
    following: dict[int, list[Edge]] = {}
    for edge in edges:
        following.setdefault(edge["begin_node_id"], []).append(edge)

    @cache
    def from_node(node: int) -> int:
        ways = (e["weight_ns"] + from_node(e["end_node_id"]) for e in following.get(node, ()))
        return max(ways, default=0)

    return max(map(from_node, sorted(following, reverse=True)), default=0)


def expected(
    nodes: Iterable[Node], edges: list[Edge], factor: float, name: str | None, class_: str | None
) -> tuple[int, int, int]:
    """Return the path length before and after, and the number of faster events, as documented."""
    chosen = {
        node["event_id"]
        for node in nodes
        if (name is None or name in node["name"]) and (class_ is None or node["class"] == class_)
    }
    changed: list[Edge] = []
    events = set()
    for edge in edges:
        weight = edge["weight_ns"]
        if edge["edge_type"] == "operator" and edge["event_id"] in chosen:
            events.add(edge["event_id"])
            weight = round(Fraction(weight) / Fraction(factor))
        changed.append({**edge, "weight_ns": weight})
    return length_of(edges), length_of(changed), len(events)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Node], list[Edge]]:
    """Draw the nodes of a few events, and random edges from lower to higher nodes."""
    events = draw(
        st.lists(
            st.tuples(st.sampled_from(NAMES), st.sampled_from(CLASSES)), min_size=1, max_size=4
        )
    )
    owners = [number % len(events) for number in range(2 * len(events))]
    nodes = [
        {"event_id": 10 * owner, "name": events[owner][0], "class": events[owner][1]}
        for owner in owners
    ]
    pairs = st.tuples(st.integers(0, len(nodes) - 1), st.integers(0, len(nodes) - 1))
    chosen = draw(st.lists(pairs.filter(lambda p: p[0] < p[1]), max_size=12, unique=True))
    edges = [
        {
            "begin_node_id": begin,
            "end_node_id": end,
            "weight_ns": draw(st.integers(0, 20)),
            "edge_type": draw(st.sampled_from(TYPES)),
            "event_id": draw(st.sampled_from([None, *(10 * owner for owner in owners)])),
        }
        for begin, end in sorted(chosen)
    ]
    return nodes, edges


EDGE_SCHEMA = pa.schema(
    [
        ("begin_node_id", pa.int64()),
        ("end_node_id", pa.int64()),
        ("weight_ns", pa.int64()),
        ("edge_type", pa.string()),
        ("event_id", pa.int64()),
    ]
)
NODE_SCHEMA = pa.schema([("event_id", pa.int64()), ("name", pa.string()), ("class", pa.string())])


@settings(max_examples=200, deadline=None)
@given(
    graphs(),
    st.sampled_from(FACTORS),
    st.sampled_from([None, "gemm", "mm", ""]),
    st.sampled_from([None, "computation", "memory"]),
)
def test_any_graph_is_as_long_as_its_longest_path(
    graph: tuple[list[Node], list[Edge]], factor: float, name: str | None, class_: str | None
) -> None:
    """The longest path of a small graph matches an exhaustive search, even with faster events."""
    nodes, edges = graph
    if name is None and class_ is None:
        name = "gemm"
    tables = (
        pa.Table.from_pylist(nodes, NODE_SCHEMA),
        pa.Table.from_pylist(edges, EDGE_SCHEMA),
    )
    found = CPGraph(*tables, pa.table({}), run="run", rank=0)
    answer = found.what_if(factor, name=name, kernel_class=class_)
    assert (answer.length_ns, answer.new_length_ns, answer.events) == expected(
        nodes, edges, factor, name, class_
    )


@pytest.mark.slow(reason="fuzz")
@pytest.mark.parametrize("seed", range(examples(1)))
def test_random_jobs_get_as_fast_as_their_longest_path(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What-if answers for random jobs match an exhaustive search, with and without launch edges."""
    shorter = 0
    with hta_sql.open(store_of_job(tmp_path_factory, seed)) as store:
        for run in store.runs():
            for rank in store.ranks(run):
                for launch_edges in (False, True):
                    graph = critical_path(store, rank, run, include_launch_edges=launch_edges)
                    if graph is None:
                        continue
                    nodes, edges = graph.nodes_table.to_pylist(), graph.edges_table.to_pylist()
                    for factor in (2, 3, 1000):
                        for name, class_ in ((None, "computation"), ("gemm", None), ("aten", None)):
                            answer = graph.what_if(factor, name=name, kernel_class=class_)
                            found = answer.length_ns, answer.new_length_ns, answer.events
                            assert found == expected(nodes, edges, factor, name, class_)
                            shorter += answer.saved_ns > 0
    assert shorter
