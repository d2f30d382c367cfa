"""The scenarios of a replay: the durations of every node in each scenario."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hta_sql.replay.arrays import Durations, Floats, Ints
from hta_sql.replay.graph import Replay, filled

RECORDED, UNIFORM = "as recorded", "uniform"
NO_STRAGGLER, NO_EXPOSED, LINKS = "no late rank", "no exposed communication", "link at peers' speed"

MOST_PARTS = 32
"""Maximum number of parts of a kind for which the slowdown is attributed to these parts."""

FACTORS = (0.0, 0.5, 0.8)
"""Factors on the durations of a kernel or class.

For factors in between, interpolating the savings gives a lower bound.
"""

MOST_KERNELS = 8
"""Number of kernels that are made faster: those with the longest total time over all ranks."""

Part = tuple[str, str]
"""Kind and name of a part of the job."""


def recorded(replay: Replay) -> Durations:
    """Return the recorded durations of nodes."""
    nodes = replay.nodes
    own, host, gap, lag = (filled(nodes[f"{name}_ns"]) for name in ("own", "host", "gap", "lag"))
    return Durations(own, host, gap, lag)


def scenarios(replay: Replay) -> dict[str, Durations]:
    """Return the durations of nodes in each scenario.

    The scenarios without stragglers or slow links exist only if the run has some.
    """
    now, values = recorded(replay), replay.values
    transfer, none = filled(replay.nodes["transfer_ns"]), np.zeros(len(replay))
    found = {RECORDED: now}
    if values["is_straggler"].any():
        found[NO_STRAGGLER] = _of(replay, "peer", now.lag)
    found["balanced"] = _of(replay, "mean", now.lag)
    found["no transfer"] = Durations(now.own, now.host, now.gap, now.lag - transfer)
    found[NO_EXPOSED] = Durations(now.own, now.host, now.gap, none, meets=False)
    if values["is_slow_link"].any():
        peers = filled(values["peer_lag_ns"])
        found[LINKS] = Durations(now.own, now.host, now.gap, peers)
    found[UNIFORM] = _of(replay, UNIFORM, filled(values["uniform_lag_ns"]))
    return found


def _of(replay: Replay, name: str, lag: Floats) -> Durations:
    own, host, gap = (filled(replay.values[f"{name}_{part}_ns"]) for part in ("own", "host", "gap"))
    return Durations(own, host, gap, lag)


def parts(replay: Replay, now: Durations, uniform: Durations) -> Iterator[tuple[Part, Durations]]:
    """Yield each part of the job with the durations if only that part keeps its recorded ones.

    Args:
        replay: The run.
        now: Durations as recorded.
        uniform: Durations in the uniform scenario, which apply to all other parts.
    """
    nodes = replay.nodes
    is_operation = replay.graph.is_operation
    columns = {
        "data-parallel rank": nodes["replica"],
        "stage": nodes["stage"],
        "operation": _numbers_of_names(replay),
        "step": np.ma.filled(nodes["step"], -1),
    }
    names = dict(enumerate(_distinct_names(replay)))
    for kind, column in columns.items():
        found = np.unique(column[is_operation])
        found = found[found >= 0]
        if not 1 < len(found) <= MOST_PARTS:
            continue
        for part in found.tolist():
            mine = column == part
            own, lag = np.where(mine, now.own, uniform.own), np.where(mine, now.lag, uniform.lag)
            name = names[part] if kind == "operation" else str(part)
            yield (kind, name), Durations(own, uniform.host, uniform.gap, lag)


def _distinct_names(replay: Replay) -> list[str]:
    return sorted(set(replay.names.values()))


def _numbers_of_names(replay: Replay) -> Ints:
    """Return the index of each node's name in the sorted distinct names."""
    numbers = {name: number for number, name in enumerate(_distinct_names(replay))}
    table = np.zeros(max(replay.names) + 1, np.int64)
    for name_id, name in replay.names.items():
        table[name_id] = numbers[name]
    return table[replay.nodes["name_id"]]


def faster(replay: Replay, now: Durations) -> Iterator[tuple[tuple[str, Part], Durations]]:
    """Yield each class and each large kernel, with the durations if it were faster by a factor.

    For a collective, the factor applies to the transfer, after the last rank has started it. Ranks
    still wait for each other.

    Args:
        replay: The run.
        now: Durations as recorded.
    """
    transfer = filled(replay.nodes["transfer_ns"])
    taken = np.where(replay.graph.collective >= 0, transfer, now.own)
    names = _distinct_names(replay)
    numbers = np.where(replay.graph.is_operation, _numbers_of_names(replay), len(names))
    totals = np.bincount(numbers, taken, len(names) + 1)[:-1]
    largest = np.argsort(-totals, kind="stable")[:MOST_KERNELS]
    classes = np.ma.filled(replay.nodes["class"], "")
    present = sorted({name for name in classes.tolist() if name})
    chosen = {("class", name): np.asarray(classes == name, bool) for name in present}
    chosen |= {("kernel", names[one]): numbers == one for one in largest if totals[one] > 0}
    for part, mine in chosen.items():
        for factor in FACTORS:
            less = np.where(mine, (1 - factor) * taken, 0.0)
            own = np.maximum(0.0, now.own - less)
            lag = np.maximum(0.0, now.lag - np.where(replay.graph.collective >= 0, less, 0.0))
            yield (f"x {factor:g}", part), Durations(own, now.host, now.gap, lag)


def shifted_begins(replay: Replay, before: Floats, end: Floats) -> Floats | None:
    """Return earlier starts of host timelines whose late start a scenario explains, or None.

    A capture begins in the middle of a run. If the scenario removes the delay with which a timeline
    ends its steps, the same delay also explains a late start of its capture, up to its size. None
    means that all timelines begin as recorded.

    Args:
        replay: The run.
        before: Ends of nodes in the replay as recorded.
        end: Ends of nodes in the scenario.
    """
    begin = replay.graph.begin
    step = np.ma.filled(replay.nodes["step"], -1)
    here = np.flatnonzero(replay.graph.is_operation & (step >= 0))
    here = here[np.lexsort((replay.graph.line[here], step[here]))]
    line, step = replay.graph.line[here], step[here]
    if not len(here) or len(begin) < 2:
        return None
    firsts = np.flatnonzero((np.diff(step, prepend=-1) != 0) | (np.diff(line, prepend=-1) != 0))
    steps, numbers = np.unique(step[firsts], return_inverse=True)
    late = [np.full((len(steps), len(begin)), np.nan) for _ in range(2)]
    for table, times in zip(late, (before, end), strict=True):
        table[numbers, line[firsts]] = np.maximum.reduceat(times[here], firsts)
    whole = np.flatnonzero(~np.isnan(late[0]).any(axis=1))
    if not len(whole):
        return None
    gained = [table[whole] - table[whole].min(axis=1, keepdims=True) for table in late]
    earlier = np.median(gained[0] - gained[1], axis=0)
    moved = np.clip(earlier, 0, begin - begin.min())
    return begin - moved if moved.max() > 0 else None
