"""Find the longest path in a graph whose node numbers are a topological order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


def longest_path(
    begin: IntArray, end: IntArray, weight: IntArray, count: int
) -> tuple[IntArray, int]:
    """Find the path with the largest sum of weights.

    Every edge leads from a lower to a higher number. One pass over the nodes in order is therefore
    enough, without a topological sort or recursion. Most nodes have a single incoming edge; whole
    arrays of them are contracted at once. Only nodes with several incoming edges need a choice.

    Ties: of equally long paths to a node, the one through the latest node wins; of equally long
    overall paths, the one that ends last wins.

    Args:
        begin: First node of each edge.
        end: Second node of each edge; a larger number than the first.
        weight: Weight of each edge [ns], not negative.
        count: Number of nodes; nodes are numbered from 0.

    Returns:
        The edges of the path in order, as indices into the arrays, and the length of the path [ns].
        No edges if the graph has none.
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
        # Edges are sorted by first node: on a tie the later edge replaces the earlier one.
        if total >= longest.get(second, 0):
            longest[second], chosen[second] = total, edge
    last_edge[list(chosen)] = list(chosen.values())
    at_root = np.zeros(count, np.int64)
    at_root[list(longest)] = list(longest.values())
    totals = at_root[root] + time
    node = count - 1 - int(np.argmax(totals[::-1]))
    return _path_to(node, last_edge, begin), int(totals[node])


def _rooted(begin: IntArray, weight: IntArray, only_edge: IntArray) -> tuple[IntArray, IntArray]:
    """Follow single incoming edges back to the nearest node with no or several incoming edges.

    Args:
        begin: First node of each edge.
        weight: Weight of each edge.
        only_edge: The only incoming edge of each node; -1 if it has none or several.

    Returns:
        The root of each node (possibly the node itself), and the sum of weights from the root.
    """
    root, time = np.arange(len(only_edge)), np.zeros(len(only_edge), np.int64)
    has_one = only_edge >= 0
    root[has_one] = begin[only_edge[has_one]]
    time[has_one] = weight[only_edge[has_one]]
    # Each iteration doubles the distance: a chain of a million nodes takes 20 iterations.
    while not np.array_equal(further := root[root], root):
        time += time[root]
        root = further
    return root, time


def _path_to(node: int, last_edge: IntArray, begin: IntArray) -> IntArray:
    """Return the edges that lead to a node, first edge first."""
    edges, firsts = last_edge.tolist(), begin.tolist()
    path = []
    while (edge := edges[node]) >= 0:
        path.append(edge)
        node = firsts[edge]
    return np.array(path[::-1], np.int64)
