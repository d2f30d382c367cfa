"""Which captured launch each operation of a graph replay is, from the names of both in order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

SAME_SCORE, OTHER_SCORE = 2, -1
"""Of two nodes that are paired. A node without a partner scores -1, so that a renamed node costs less than two of these."""

MIN_SHARED = 0.6
"""Share of nodes that a replay and a graph must have in common by name."""

MAX_UNKNOWN = 0.15
"""Share of a replay's names that its graph may not have. Products of another size have other kernels:
3 of 14 names in a layer of a public model."""

MOST_CELLS = 1 << 26
"""Of the table of an alignment: two lists of 8,000 names, 256 MB."""

Nodes = tuple[int | None, ...]
"""Position of the captured launch of each replayed operation; None: no launch is it."""


def pair_nodes(replayed: Sequence[str], captured: Sequence[str | None]) -> tuple[Nodes, str] | None:
    """Pair the operations of a replay with the launches of a graph.

    Args:
        replayed: Names of the operations, in the order of the nodes.
        captured: Names of the launches in their order; None if the recorder wrote none.

    Returns:
        The position of each operation's launch, and the match_method; None if this is another graph.
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
    """Whether so many kernels are not those of the graph that it is one of another size; one may always differ."""
    distinct = set(replayed)
    unknown = len(distinct - set(captured))
    return unknown > max(1, MAX_UNKNOWN * len(distinct))


def _by_occurrence(replayed: Sequence[str], captured: Sequence[str]) -> Nodes:
    """The n-th of a name is the n-th: nodes on several streams start in another order."""
    positions: dict[str, list[int]] = defaultdict(list)
    for position, name in enumerate(captured):
        positions[name].append(position)
    iterators = {name: iter(found) for name, found in positions.items()}
    return tuple(next(iterators[name]) for name in replayed)


def _aligned(replayed: Sequence[str], captured: Sequence[str]) -> Nodes:
    """Align both lists globally (Needleman and Wunsch), and pair what has the same name there.

    Layers repeat, so that pairs by occurrence, or the longest blocks in common, slip by a whole layer
    after one lost node. In a global alignment each slip costs a gap for every node of a layer.
    """
    score = _scores(replayed, captured)
    nodes: list[int | None] = [None] * len(replayed)
    row, column = len(replayed), len(captured)
    while row and column:
        # Of equal alignments the one whose gaps lie last: recordings are cut at their end.
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
    """Return the best score of each pair of beginnings."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys((*replayed, *captured)))}
    columns = np.array([numbers[name] for name in captured])
    steps = np.arange(len(captured) + 1, dtype=np.int32)
    score = np.empty((len(replayed) + 1, len(captured) + 1), np.int32)
    score[0] = -steps
    for row, name in enumerate(replayed, 1):
        same = np.where(columns == numbers[name], SAME_SCORE, OTHER_SCORE)
        best = np.maximum(score[row - 1, 1:] - 1, score[row - 1, :-1] + same)
        # Gaps in a row cost 1 each: a running maximum.
        score[row] = np.maximum.accumulate(np.concatenate(([-row], best)) + steps) - steps
    return score
