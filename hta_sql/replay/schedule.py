"""The schedule of a replay: sorts nodes into levels, so that they depend only on lower levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hta_sql.replay.arrays import Flags, Graph, Ints
from hta_sql.replay.watch import UNWATCHED, Watch

NODES = 20_000
"""Number of nodes after which the limits are checked; they take about 20 ms."""


@dataclass(frozen=True)
class Schedule:
    """Operations and host anchors, sorted by level: dependencies of a node have lower levels.

    An anchor is the first launch on a host timeline, or a launch or call that waits for the device.
    Host work after an anchor is a prefix sum, so that only anchors need to be nodes. The array of
    times contains the times of all nodes, then the start of each host timeline, then -inf.

    Attributes:
        source: Node of the graph, one entry per scheduled node; for an anchor, its launch or call.
        is_anchor: Whether the node is a host anchor.
        anchor: Position of the time to which the host work before the node is added.
        from_place: Range of `host_order` with that host work: after the first, up to the second.
        first: Offset of a node's dependencies in `waits`; one entry more than there are nodes.
        waits: Positions of the times that each node waits for, at least one per node.
        levels: Offset of each level, and the end.
        members: Positions of the members of collectives, by the level of the last member.
        member_first: Offset of each collective in `members`, and the end.
        collective_levels: Offset of each level's collectives in `member_first`, and the end.
        host_order: Nodes with a launch or call, sorted by host timeline and position.
        ended: Position of each operation of the graph; -1 for calls.
    """

    source: Ints
    is_anchor: Flags
    anchor: Ints
    from_place: tuple[Ints, Ints]
    first: Ints
    waits: Ints
    levels: Ints
    members: Ints
    member_first: Ints
    collective_levels: Ints
    host_order: Ints
    ended: Ints


@dataclass(frozen=True)
class _Nodes:
    """Operations, then anchors, before they are sorted by level; fields as in :class:`Schedule`."""

    source: Ints
    operation_count: int
    anchor: Ints
    low: Ints
    high: Ints
    first: Ints
    waits: Ints
    collective: Ints

    def __len__(self) -> int:
        return len(self.source)


def scheduled(graph: Graph, watch: Watch = UNWATCHED) -> Schedule:
    """Sort the nodes of a graph by level.

    Args:
        graph: The graph.
        watch: Limits of the computation.

    Raises:
        ComputationStoppedError: The computation was interrupted, or exceeded its time limit.
    """
    order = np.lexsort((graph.host_place, graph.line))
    order = order[graph.host_place[order] > 0]
    position = np.full(len(graph), -1, np.int64)
    operations = np.flatnonzero(graph.is_operation)
    position[operations] = np.arange(len(operations))
    nodes = _nodes(graph, order, position)
    keys = np.where(
        np.arange(len(nodes)) < nodes.operation_count,
        graph.key[nodes.source],
        graph.returned[nodes.source],
    )
    # An anchor comes after the operations that it waits for. An operation that it launches may
    # begin at the time at which the launch returns, so anchors come first among equal times.
    walk = np.lexsort((np.arange(len(nodes)) < nodes.operation_count, keys))
    level, reached = _levels(nodes, walk, watch)
    return _by_level(nodes, level, reached, order, position)


def _nodes(graph: Graph, order: Ints, position: Ints) -> _Nodes:
    is_anchor = (graph.awaited[order] >= 0) | (graph.host_place[order] == 1)
    anchors, operations = order[is_anchor], np.flatnonzero(graph.is_operation)
    # Position in the host order of the latest anchor up to each item.
    latest = np.maximum.accumulate(np.where(is_anchor, np.arange(len(order)), 0))
    number = np.cumsum(is_anchor) - 1
    place = np.full(len(graph), -1, np.int64)
    place[order] = np.arange(len(order))
    count, total = len(operations), len(operations) + len(anchors)
    ground = total + len(graph.begin)
    anchor, low, high = np.full(total, ground), np.full(total, -1), np.full(total, -1)
    launched = np.flatnonzero(place[operations] >= 0)
    at = place[operations[launched]]
    anchor[launched] = count + number[latest[at]]
    low[launched], high[launched] = latest[at], at
    waits_count = np.diff(graph.first)[operations]
    rootless = (place[operations] < 0) & (waits_count == 0)
    anchor[:count][rootless] = total + graph.line[operations[rootless]]
    at = place[anchors]
    is_first = graph.host_place[anchors] == 1
    earlier = np.where(is_first, at, latest[np.maximum(at - 1, 0)])
    anchor[count:] = np.where(is_first, total + graph.line[anchors], count + number[earlier])
    # The work before the first launch counts from the start of the host timeline.
    low[count:], high[count:] = np.where(is_first, at - 1, earlier), at
    first, waits = _padded(graph, waits_count, position, anchors, ground)
    collective = np.append(graph.collective[operations], np.full(len(anchors), -1))
    source = np.append(operations, anchors)
    return _Nodes(source, count, anchor, low, high, first, waits, collective)


def _padded(
    graph: Graph, counts: Ints, position: Ints, anchors: Ints, ground: int
) -> tuple[Ints, Ints]:
    """Return the dependencies of operations, then of anchors; nodes without any depend on -inf."""
    lengths = np.append(np.maximum(counts, 1), np.ones(len(anchors), np.int64))
    first = np.append(0, np.cumsum(lengths))
    waits = np.full(first[-1], ground)
    begins = np.repeat(first[: len(counts)], counts)
    within = np.arange(len(graph.waits)) - np.repeat(np.cumsum(counts) - counts, counts)
    waits[begins + within] = position[graph.waits]
    awaited = graph.awaited[anchors]
    waits[first[len(counts) : -1]] = np.where(awaited >= 0, position[awaited], ground)
    return first, waits


def _levels(nodes: _Nodes, walk: Ints, watch: Watch) -> tuple[Ints, Ints]:
    """Return the level of each node, and the level of each collective's last member."""
    total = len(nodes)
    highest = int(max(nodes.anchor.max(initial=0), nodes.waits.max(initial=0), total))
    level = [0] * (highest + 1)
    reached = [0] * (int(nodes.collective.max(initial=-1)) + 1)
    anchors, firsts, waits = nodes.anchor.tolist(), nodes.first.tolist(), nodes.waits.tolist()
    numbers = [*nodes.collective.tolist(), *([-1] * (len(level) - total))]
    for done, node in enumerate(walk.tolist()):
        if done % NODES == 0:
            watch.check()
        found = level[anchors[node]]
        for other in waits[firsts[node] : firsts[node + 1]]:
            number = numbers[other]
            found = max(found, level[other] if number < 0 else reached[number])
        level[node] = found + 1
        number = numbers[node]
        if number >= 0:
            reached[number] = max(reached[number], found + 1)
    return np.array(level[:total], np.int64), np.array(reached, np.int64)


def _by_level(nodes: _Nodes, level: Ints, reached: Ints, order: Ints, position: Ints) -> Schedule:
    """Renumber nodes by level."""
    total = len(nodes)
    by_level = np.argsort(level, kind="stable")
    now = np.arange(int(max(nodes.anchor.max(initial=0), nodes.waits.max(initial=0), total)) + 1)
    now[by_level] = np.arange(total)
    lengths = np.diff(nodes.first)[by_level]
    first = np.append(0, np.cumsum(lengths))
    taken = np.repeat(nodes.first[:-1][by_level] - first[:-1], lengths) + np.arange(first[-1])
    steps = np.arange(1, int(level.max(initial=0)) + 2)
    members = np.flatnonzero(nodes.collective >= 0)
    numbers = nodes.collective[members]
    members = members[np.lexsort((numbers, reached[numbers]))]
    numbers = nodes.collective[members]
    begins = np.flatnonzero(np.diff(numbers, prepend=-1) != 0)
    return Schedule(
        source=nodes.source[by_level],
        is_anchor=by_level >= nodes.operation_count,
        anchor=now[nodes.anchor[by_level]],
        from_place=(nodes.low[by_level], nodes.high[by_level]),
        first=first,
        waits=now[nodes.waits[taken]],
        levels=np.searchsorted(level[by_level], steps),
        members=now[members],
        member_first=np.append(begins, len(members)),
        collective_levels=np.searchsorted(reached[numbers[begins]], steps),
        host_order=order,
        ended=np.where(position >= 0, now[position], -1),
    )
