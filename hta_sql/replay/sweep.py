"""The pass over a replay's dependency graph: computes node ends for several scenarios at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hta_sql.replay.arrays import Durations, Floats, Graph
from hta_sql.replay.schedule import scheduled
from hta_sql.replay.watch import UNWATCHED, Watch

CHUNK_BYTES = 64 << 20
"""Maximum size of an array of nodes by scenarios [bytes]; about six such arrays exist at a time."""

LEVELS = 500
"""Number of levels after which the limits are checked; they take about 10 ms."""


class Sweep:
    """Computes the times of all nodes of a graph, level by level.

    Args:
        graph: The graph.
        watch: Limits of the computation.
    """

    def __init__(self, graph: Graph, watch: Watch = UNWATCHED) -> None:
        self._graph = graph
        self._watch = watch
        self._plan = scheduled(graph, watch)

    def ends(self, scenarios: Sequence[Durations]) -> Iterator[Floats]:
        """Yield the ends of all operations for each scenario [ns]; NaN for calls.

        Scenarios are computed in groups, so that memory does not grow with their number.

        Raises:
            ComputationStoppedError: The computation was interrupted, or exceeded its time limit.
        """
        size = max(1, CHUNK_BYTES // (8 * max(1, len(self._graph))))
        ended = self._plan.ended
        for at in range(0, len(scenarios), size):
            times = self._times(scenarios[at : at + size])
            for column in np.ascontiguousarray(times.T):
                yield np.where(ended >= 0, column[ended], np.nan)

    def _times(self, scenarios: Sequence[Durations]) -> Floats:
        """Pass over the levels once; return the times of scheduled nodes (nodes by scenarios)."""
        graph, plan = self._graph, self._plan
        total = len(plan.source)
        head, gap, own, lag = self._columns(scenarios)
        meets = np.array([one.meets for one in scenarios])
        begins = [graph.begin if one.begin is None else one.begin for one in scenarios]
        times = np.empty((total + len(graph.begin) + 1, len(scenarios)))
        times[total:-1] = np.stack(begins, axis=1)
        times[-1] = -np.inf
        levels, first = plan.levels.tolist(), plan.first.tolist()
        collectives, member_first = plan.collective_levels.tolist(), plan.member_first.tolist()
        steps = zip(levels, levels[1:], collectives, collectives[1:], strict=False)
        for number, (low, high, one, end) in enumerate(steps):
            if number % LEVELS == 0:
                self._watch.check()
            begin = first[low]
            ready = times[plan.waits[begin : first[high]]]
            if first[high] - begin > high - low:
                ready = np.maximum.reduceat(ready, plan.first[low:high] - begin, axis=0)
            ready += gap[low:high]
            launched = times[plan.anchor[low:high]]
            launched += head[low:high]
            np.maximum(launched, ready, out=ready)
            np.add(ready, own[low:high], out=times[low:high])
            if end > one:
                since, until = member_first[one], member_first[end]
                members = plan.members[since:until]
                starts = times[members]
                firsts = plan.member_first[one:end] - since
                last = np.maximum.reduceat(starts, firsts, axis=0)
                last = np.repeat(last, np.diff(plan.member_first[one : end + 1]), axis=0)
                times[members] = np.where(meets, last, starts) + lag[since:until]
        return times[:total]

    def _columns(self, scenarios: Sequence[Durations]) -> tuple[Floats, Floats, Floats, Floats]:
        """Return host work, delays and durations of nodes, and lags of members, by scenario."""
        graph, plan = self._graph, self._plan
        total, source = len(plan.source), plan.source
        is_call = plan.is_anchor & ~np.isnan(graph.after[source])
        works_after = plan.is_anchor & ~is_call
        places = [place + 1 for place in plan.from_place]
        fixed = np.where(plan.is_anchor, 0.0, graph.launch_gap[source])
        rootless = (
            ~plan.is_anchor & (plan.anchor >= total) & (plan.anchor < total + len(graph.begin))
        )
        joins = graph.collective[source] >= 0
        members = source[plan.members]
        shape = (total, len(scenarios))
        head, gap, own = np.empty(shape), np.empty(shape), np.empty(shape)
        lag = np.empty((len(members), len(scenarios)))
        worked: dict[int, Floats] = {}
        for column, one in enumerate(scenarios):
            self._watch.check()
            if id(one.host) not in worked:
                sums = np.concatenate(([0.0], np.cumsum(one.host[plan.host_order])))
                worked[id(one.host)] = sums[places[1]] - sums[places[0]] + fixed
            head[:, column] = worked[id(one.host)]
            delay = one.gap[source]
            head[rootless, column] = delay[rootless] + graph.early[source[rootless]]
            delay = np.where(is_call, graph.after[source], delay)
            gap[:, column] = np.where(works_after, one.host[source], delay)
            own[:, column] = np.where(plan.is_anchor | joins, 0.0, one.own[source])
            lag[:, column] = one.lag[members]
        return head, gap, own, lag
