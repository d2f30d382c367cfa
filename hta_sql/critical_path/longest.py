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
    enough: no sorting of a general graph, no recursion. Most nodes have one edge that leads to
    them; those are passed over in whole arrays, and only where ways meet is there a choice.
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
    if not len(end):
        return np.empty(0, np.int64), 0
    incoming = np.bincount(end, minlength=count)
    last_edge = np.full(count, -1, np.int64)
    last_edge[end] = np.arange(len(end))
    root, time = _rooted(begin, weight, np.where(incoming == 1, last_edge, -1))
    meeting = np.flatnonzero(incoming[end] > 1)
    meeting = meeting[np.lexsort((begin[meeting], end[meeting]))]
    firsts = begin[meeting]
    rows = zip(
        meeting.tolist(),
        root[firsts].tolist(),
        (time[firsts] + weight[meeting]).tolist(),
        end[meeting].tolist(),
        strict=True,
    )
    longest: dict[int, int] = {}
    chosen: dict[int, int] = {}
    for edge, first, along, second in rows:
        total = longest.get(first, 0) + along
        # Edges come by ascending first node: on a tie the later one replaces the earlier.
        if total >= longest.get(second, 0):
            longest[second], chosen[second] = total, edge
    last_edge[list(chosen)] = list(chosen.values())
    at_root = np.zeros(count, np.int64)
    at_root[list(longest)] = list(longest.values())
    totals = at_root[root] + time
    node = count - 1 - int(np.argmax(totals[::-1]))
    return _path_to(node, last_edge, begin), int(totals[node])


def _rooted(begin: IntArray, weight: IntArray, only_edge: IntArray) -> tuple[IntArray, IntArray]:
    """Lead every node back to where it has no choice any more: a node with none or with many edges.

    Args:
        begin: First node of each edge.
        weight: Weight of each edge.
        only_edge: The only edge to each node, -1 where it has none or many.

    Returns:
        That node for each one, itself included, and the sum of weights from there.
    """
    root, time = np.arange(len(only_edge)), np.zeros(len(only_edge), np.int64)
    has_one = only_edge >= 0
    root[has_one] = begin[only_edge[has_one]]
    time[has_one] = weight[only_edge[has_one]]
    # Each round leads twice as far back, so a chain of a million nodes takes twenty.
    while not np.array_equal(further := root[root], root):
        time += time[root]
        root = further
    return root, time


def _path_to(node: int, last_edge: IntArray, begin: IntArray) -> IntArray:
    """Return the edges that lead to a node, from the first one on."""
    edges, firsts = last_edge.tolist(), begin.tolist()
    path = []
    while (edge := edges[node]) >= 0:
        path.append(edge)
        node = firsts[edge]
    return np.array(path[::-1], np.int64)
