"""Tests that compare the longest path in a graph with an exhaustive search."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hta_sql.critical_path.longest import longest_path

if TYPE_CHECKING:
    from collections.abc import Iterator

Edges = list[tuple[int, int, int]]

edges_of_dags = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 7), st.integers(0, 9)).filter(
        lambda e: e[0] < e[1]
    ),
    max_size=12,
    unique_by=lambda e: e[:2],
)


def paths(edges: Edges) -> Iterator[Edges]:
    """Yield every path of at least one edge."""
    for first in edges:
        yield [first]
        for rest in paths([e for e in edges if e[0] >= first[1]]):
            if rest[0][0] == first[1]:
                yield [first, *rest]


def solved(edges: Edges) -> tuple[Edges, int]:
    """Return the edges and the length that longest_path computes."""
    begin, end, weight = (np.array([e[i] for e in edges], np.int64) for i in range(3))
    path, length = longest_path(begin, end, weight, 8)
    return [edges[at] for at in path.tolist()], length


@given(edges_of_dags)
def test_no_path_is_longer(edges: Edges) -> None:
    """The result is a valid path of maximum length."""
    path, length = solved(edges)
    assert length == max((sum(e[2] for e in p) for p in paths(edges)), default=0)
    assert sum(e[2] for e in path) == length
    assert all(a[1] == b[0] for a, b in itertools.pairwise(path))


@given(edges_of_dags, st.randoms())
def test_ties_do_not_depend_on_the_order_of_edges(edges: Edges, random: Any) -> None:
    """The choice between equally long paths does not depend on the order of the edges."""
    shuffled = list(edges)
    random.shuffle(shuffled)
    assert solved(edges) == solved(shuffled)


def test_ties_go_through_the_latest_node() -> None:
    """Of the equally long paths 0-1-3 and 0-2-3, the one through the latest node is chosen.

    The final edge to node 4 has zero length.
    """
    assert solved([(0, 1, 5), (0, 2, 5), (1, 3, 2), (2, 3, 2), (3, 4, 0)])[0] == [
        (0, 2, 5),
        (2, 3, 2),
        (3, 4, 0),
    ]
