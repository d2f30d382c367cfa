"""Partitions of a query for an executor: concatenating their rows gives the result.

An analysis whose answers are materialized per run can be partitioned by run. An analysis that
declares ``Ranks: independent`` can also be partitioned by rank.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from hta_sql.library.answers import is_of_runs
from hta_sql.library.objects import Library, SqlObject
from hta_sql.store.query.execution import Scope, Size, has_independent_ranks, requested_sizes

log = logging.getLogger(__name__)

LEAST_EVENTS = 1_000_000
"""Minimum number of events per task, because planning the query of a task takes 0.5 s."""

MOST_TASKS = 64
"""Approximate maximum number of tasks of a query."""


def unsplit_reason(analysis: SqlObject, library: Library) -> str | None:
    """Return why a query cannot be partitioned; None if it can."""
    if analysis not in library.base.analyses:
        return "it is a user analysis"
    if "Materialized" in analysis.facts:
        return analysis.facts["Materialized"].partition("; ")[2]
    return None if is_of_runs(analysis) else "its rows combine several runs"


def is_partitioned(analysis: SqlObject, library: Library) -> bool:
    """Return whether an executor can compute partitions of an analysis; log why not."""
    if why := unsplit_reason(analysis, library):
        log.warning("%s is computed locally, not by the executor: %s.", analysis.base_name, why)
    return why is None


def tasks(
    analysis: SqlObject, sizes: Iterable[Size], values: Mapping[str, Any] | None = None
) -> list[Scope]:
    """Partition a query for an executor: a task gets whole runs, or some ranks of a large run.

    Small ranks are grouped, because planning a query for each rank would cost more than a single
    query.

    Args:
        analysis: The analysis.
        sizes: The ranks of the store.
        values: Parameters of the query.
    """
    wanted = requested_sizes(sizes, values or {})
    share = max(LEAST_EVENTS, sum(events for *_, events in wanted) // MOST_TASKS)
    found: list[Scope] = []
    room = 0
    for run, ranks in groupby(wanted, key=lambda size: size[0]):
        counts = {rank: events for _, rank, events in ranks}
        events = sum(counts.values())
        if events > share and has_independent_ranks(analysis):
            found += [{"runs": [run], "ranks": group} for group in _groups(counts, share)]
            room = 0
        elif events <= room:
            found[-1]["runs"].append(run)
            room -= events
        else:
            found.append({"runs": [run]})
            room = share - events
    return found


def _groups(counts: Mapping[int, int], share: int) -> list[list[int]]:
    """Group neighboring ranks so that each group has at most ``share`` events."""
    groups: list[list[int]] = []
    room = 0
    for rank, events in counts.items():
        if events <= room:
            groups[-1].append(rank)
        else:
            groups.append([rank])
            room = share
        room -= events
    return groups
