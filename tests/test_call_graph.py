"""Tests of CallGraph, which adds HTA's columns of the call_stack analysis to frames.

The call tree is that of tests/golden/operators/call_stack_v1.test.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hta_sql.errors import RankError
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.common.trace_call_graph import CALL_GRAPH_DEFAULTS, CallGraph

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


def test_columns(graph: CallGraph) -> None:
    """The data frame of a rank has HTA's columns, in microseconds."""
    frame = graph.trace_data.get_trace(0)

    def columns_of(event: int) -> list[float]:
        return [frame[column][event] for column in CALL_GRAPH_DEFAULTS]

    assert columns_of(2) == [1, 2, 2, 20, 55, 3, 44, 35]
    assert columns_of(0) == [-100, 0, 5, 20, 65, 4, 49, 45]
    assert columns_of(13) == [-300, 0, 1, -1, -1, 0, 0, 0]
    assert columns_of(14) == [3, 4, 0, 20, 30, 1, 10, 10]
    assert columns_of(18) == [-1, -1, -1, -1, -1, 0, 0, 0]
    assert frame["parent"].dtype == frame["num_kernels"].dtype == "int64"


def test_ranks(graph: CallGraph) -> None:
    """A graph can be limited to some ranks; an unknown rank is an error."""
    assert graph.ranks == [0, 3]
    assert CallGraph(graph.trace_data, ranks=[3, 8]).ranks == [3]
    with pytest.raises(RankError):
        CallGraph(graph.trace_data, ranks=[8])
