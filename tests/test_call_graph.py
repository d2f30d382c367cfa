"""Tests of CallGraph, which provides HTA's methods on top of the call_stack analysis.

The call tree is that of tests/golden/operators/call_stack_v1.test.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hta_sql.errors import ParameterError, RankError
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.common.trace_call_graph import CallGraph

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACE = Path(__file__).parent / "traces" / "call_stacks.json"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CallGraph]:
    """Ingest the same trace as ranks 0 and 3."""
    folder = tmp_path_factory.mktemp("graph")
    paths = {}
    for rank in (0, 3):
        paths[rank] = str(folder / f"{rank}.json")
        Path(paths[rank]).write_bytes(TRACE.read_bytes())
    with Trace(paths) as trace:
        yield CallGraph(trace)


def test_mapping(graph: CallGraph) -> None:
    """The mapping has one row per thread, including the backward thread.

    That thread needs a root of its own, because its event outside of the tree has no parent.
    """
    rows = graph.mapping[graph.mapping["rank"] == 3].to_dict("records")
    assert [tuple(row.values()) for row in rows] == [
        (3, 100, 100, "main", 3, -100, 1),
        (3, 100, 200, "bwd", 4, -200, 1),
        (3, 100, 300, "loader", 5, -300, 1),
    ]
    assert [stack.identity.rank for stack in graph.call_stacks] == [0, 0, 0, 3, 3, 3]


def test_columns(graph: CallGraph) -> None:
    """The data frame of a rank has HTA's columns, in microseconds."""
    frame = graph.trace_data.get_trace(0)

    def columns_of(event: int) -> list[float]:
        return [frame[column][event] for column in CallGraph.stack_columns]

    assert columns_of(2) == [1, 2, 2, 20, 55, 3, 44, 35]
    assert columns_of(0) == [-100, 0, 5, 20, 65, 4, 49, 45]
    assert columns_of(13) == [-300, 0, 1, -1, -1, 0, 0, 0]
    assert columns_of(14) == [3, 4, 0, 20, 30, 1, 10, 10]
    assert columns_of(18) == [-1, -1, -1, -1, -1, 0, 0, 0]
    assert frame["parent"].dtype == frame["num_kernels"].dtype == "int64"


def test_stack_of_node(graph: CallGraph) -> None:
    """The stack lists a node's ancestors and descendants by start, with device activity."""
    assert list(graph.get_stack_of_node(17)["index"]) == [0, 7, 9, 10, 11, 17]
    assert list(graph.get_stack_of_node(2)["index"]) == [0, 1, 2, 3, 4, 14, 16, 15]
    assert list(graph.get_stack_of_node(2, 3, skip_ancestors=True)["index"]) == [
        2,
        3,
        4,
        14,
        16,
        15,
    ]
    assert list(graph.get_stack_of_node(13, 0)["index"]) == [13]
    for index in (18, 99):
        with pytest.raises(ParameterError, match=str(index)):
            graph.get_stack_of_node(index)


def test_one_thread(graph: CallGraph) -> None:
    """The call tree of a single thread can be queried."""
    (stack,) = graph.get_call_stacks(rank=0, tid=100)
    assert list(stack.get_dataframe()["index"]) == list(range(9))
    assert stack.get_children(-100) == [0]
    assert stack.get_children(0) == [1, 5, 7]
    assert stack.get_children(7) == [9, 8]
    assert (stack.get_parent(9), stack.get_parent(0), stack.get_parent(99)) == (7, -100, -2)
    assert stack.get_path_to_root(4) == [4, 2, 1, 0, -100]
    assert stack.get_path_to_root(99) == []
    assert stack.get_descendants(1) == [1, 2, 3, 4]
    assert stack.get_descendants(1, include_gpu_kernel=True) == [1, 2, 3, 14, 4, 16, 15]
    assert stack.get_descendants(99) == []


def test_the_thread_of_a_node(graph: CallGraph) -> None:
    """Device activity belongs to the thread that launched it."""
    assert graph.get_csg_of_node(17, 3).identity == (3, 100, 200)
    assert graph.get_csg_of_node(1, 0).identity == (0, 100, 100)
    assert list(graph.get_gpu_kernels(0)["index"]) == [14, 15, 16, 17, 18]


def test_ranks(graph: CallGraph) -> None:
    """A graph can be limited to some ranks; an unknown rank is an error."""
    assert CallGraph(graph.trace_data, ranks=[3, 8]).ranks == [3]
    with pytest.raises(RankError):
        CallGraph(graph.trace_data, ranks=[8])
    with pytest.raises(RankError):
        graph.get_gpu_kernels(8)
