"""Pairs the operations of a graph replay with captured launches, by their names and order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

SAME_SCORE, OTHER_SCORE = 2, -1
"""Scores of two aligned nodes with the same name, and with different names.

A node without a partner scores -1, so a renamed node costs less than two nodes without a partner.
"""

MIN_SHARED = 0.6
"""Minimum share of nodes that a replay and a graph must have in common by name."""

MAX_UNKNOWN = 0.15
"""Maximum share of a replay's kernel names that are missing in its graph.

Matrix products of another size use other kernels: 3 of 14 names in a layer of a public model.
"""

MOST_CELLS = 1 << 26
"""Maximum number of cells of an alignment table: two lists of 8,000 names, 256 MB."""

Nodes = tuple[int | None, ...]
"""Position of the captured launch of each replayed operation; None if it has no launch."""


def pair_nodes(replayed: Sequence[str], captured: Sequence[str | None]) -> tuple[Nodes, str] | None:
    """Pair the operations of a replay with the launches of a graph.

    Args:
        replayed: Names of the operations, in the order of the nodes.
        captured: Names of the launches, in order; None for a launch without a recorded name.

    Returns:
        The position of each operation's launch, and the match_method; None if the graph is not the
        replayed one.
    """
    if any(name is None for name in captured):
        agrees = len(replayed) == len(captured) and all(map(_may_be, replayed, captured))
        return (tuple(range(len(replayed))), "count") if agrees else None
    names = [name for name in captured if name is not None]
    if list(replayed) == names:
        return tuple(range(len(names))), "position"
    if Counter(replayed) == Counter(names):
        return _by_occurrence(replayed, names), "occurrence"
    is_other = shared_count(replayed, names) < MIN_SHARED * max(len(replayed), len(names))
    if is_other or _has_other_names(replayed, names) or len(replayed) * len(names) > MOST_CELLS:
        return None
    return _aligned(replayed, names), "alignment"


def shared_count(replayed: Iterable[str | None], captured: Iterable[str | None]) -> int:
    """Count the nodes that two lists have in common by name, in any order."""
    common = Counter(name for name in replayed if name is not None)
    return (common & Counter(name for name in captured if name is not None)).total()


def _may_be(replayed: str, captured: str | None) -> bool:
    """Return whether a replayed node can be a captured launch; a launch without a name is a kernel."""
    return replayed == captured if captured else not replayed.startswith("<")


def _has_other_names(replayed: Sequence[str], captured: Sequence[str]) -> bool:
    """Return whether the graph lacks so many kernel names that it has a different size.

    One missing name is always allowed.
    """
    distinct = set(replayed)
    unknown = len(distinct - set(captured))
    return unknown > max(1, MAX_UNKNOWN * len(distinct))


def _by_occurrence(replayed: Sequence[str], captured: Sequence[str]) -> Nodes:
    """Pair the n-th operation with a name and the n-th launch with that name.

    Their order may differ, because nodes on several streams may start in a different order.
    """
    positions: dict[str, list[int]] = defaultdict(list)
    for position, name in enumerate(captured):
        positions[name].append(position)
    iterators = {name: iter(found) for name, found in positions.items()}
    return tuple(next(iterators[name]) for name in replayed)


def _aligned(replayed: Sequence[str], captured: Sequence[str]) -> Nodes:
    """Align both lists globally (Needleman-Wunsch), and pair aligned nodes with the same name.

    Layers repeat, so pairing by occurrence, or by longest common blocks, would slip by a whole
    layer after one lost node. In a global alignment, a slip costs a gap for every node of a layer.
    """
    score = _scores(replayed, captured)
    nodes: list[int | None] = [None] * len(replayed)
    row, column = len(replayed), len(captured)
    while row and column:
        # Of equal alignments, take the one with the latest gaps: recordings are cut at their end.
        if score[row, column] == score[row, column - 1] - 1:
            column -= 1
        elif score[row, column] == score[row - 1, column] - 1:
            row -= 1
        else:
            row, column = row - 1, column - 1
            if replayed[row] == captured[column]:
                nodes[row] = column
    return tuple(nodes)


def _scores(replayed: Sequence[str], captured: Sequence[str]) -> npt.NDArray[np.int32]:
    """Return the best alignment score of each pair of prefixes."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys((*replayed, *captured)))}
    columns = np.array([numbers[name] for name in captured])
    steps = np.arange(len(captured) + 1, dtype=np.int32)
    score = np.empty((len(replayed) + 1, len(captured) + 1), np.int32)
    score[0] = -steps
    for row, name in enumerate(replayed, 1):
        same = np.where(columns == numbers[name], SAME_SCORE, OTHER_SCORE)
        best = np.maximum(score[row - 1, 1:] - 1, score[row - 1, :-1] + same)
        # Consecutive gaps cost 1 each, which a running maximum computes for a whole row.
        score[row] = np.maximum.accumulate(np.concatenate(([-row], best)) + steps) - steps
    return score
