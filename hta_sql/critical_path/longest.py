"""The longest path of a graph whose numbering is a topological order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


def longest_path(
    begin: IntArray, end: IntArray, weight: IntArray, count: int
) -> tuple[IntArray, int]:
    """Find the path with the largest sum of weights.

    Every edge leads from a lower to a higher number, so one pass over the nodes in order is
    enough: no sorting of a general graph, no recursion, and time and memory grow with the edges.
    Of equally long ways to a node the one through the latest node counts; of equally long paths
    the one that ends last.

    Args:
        begin: First node of each edge.
        end: Second node of each edge, larger.
        weight: Weight of each edge [ns], not negative.
        count: Nodes, numbered from 0.

    Returns:
        The edges of the path in order, as positions in the arrays, and its length [ns]. No edges
        for a graph without any.
    """
    order = np.lexsort((begin, end))
    longest = [0] * count
    last_edge = [-1] * count
    rows = zip(
        order.tolist(),
        begin[order].tolist(),
        end[order].tolist(),
        weight[order].tolist(),
        strict=True,
    )
    for edge, first, second, time in rows:
        total = longest[first] + time
        # Edges come by ascending first node: on a tie the later one replaces the earlier.
        if total >= longest[second]:
            longest[second], last_edge[second] = total, edge
    if not len(order):
        return np.empty(0, np.int64), 0
    node = max(range(count), key=lambda at: (longest[at], at))
    length = longest[node]
    path = []
    while (edge := last_edge[node]) >= 0:
        path.append(edge)
        node = int(begin[edge])
    return np.array(path[::-1], np.int64), length
