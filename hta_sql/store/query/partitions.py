"""Partitions of a query: concatenating their rows gives the result.

If an analysis with independent ranks orders its rows by run and something else than rank, the
concatenated rows are sorted again.

An analysis whose answers are materialized per run can be partitioned by run. An analysis that
declares ``Ranks: independent`` can also be partitioned by rank.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from hta_sql.errors import RankError
from hta_sql.library.answers import first_terms, is_of_runs
from hta_sql.library.objects import Library, SqlObject

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

APART_EVENTS = 4_000_000
"""Number of events above which ranks are queried separately; each query takes 0.5 s to plan."""

LEAST_EVENTS = 1_000_000
"""Minimum number of events per task, because planning the query of a task takes 0.5 s."""

MOST_TASKS = 64
"""Approximate maximum number of tasks of a query."""

_LISTED = 20
"""Maximum number of runs or ranks that an error lists."""

Size = tuple[str, int, int]
"""Run, rank and number of events."""

Scope = dict[str, Any]
"""Values of the parameters ``runs`` and ``ranks`` that restrict a query."""


def requested_sizes(sizes: Iterable[Size], values: Mapping[str, Any]) -> list[Size]:
    """Return the ranks that a query selects, in row order.

    Args:
        sizes: The ranks of the store.
        values: Parameters of the query.
    """
    runs, ranks = values.get("runs"), values.get("ranks")
    return [
        (run, rank, count)
        for run, rank, count in sizes
        if (runs is None or run in runs) and (ranks is None or rank in ranks)
    ]


def refuse_unknown(
    store: str, sizes: Iterable[Size], wanted_runs: Iterable[str], wanted_ranks: Iterable[int]
) -> None:
    """Raise if a requested run or rank is not in a store.

    Raises:
        RankError: A run or rank is missing; the message lists the existing ones.
    """
    sizes = list(sizes)
    runs = sorted({run for run, *_ in sizes})
    ranks = sorted({rank for _, rank, _ in sizes})
    for run in wanted_runs:
        if run not in runs:
            raise RankError(f"No run {run!r} in {store!r}; available runs: {_first(runs)}.")
    for rank in wanted_ranks:
        if rank not in ranks:
            raise RankError(f"No rank {rank} in {store!r}; available ranks: {_first(ranks)}.")


def _first(names: Sequence[str | int]) -> str:
    """Join the first names of a list, and count all if some are omitted."""
    more = f", ... ({len(names):,} in total)" if len(names) > _LISTED else ""
    return ", ".join(map(str, names[:_LISTED])) + more


def one_by_one(
    analysis: SqlObject, sizes: Iterable[Size], values: Mapping[str, Any]
) -> list[Scope]:
    """Return the scopes that are queried locally, one after the other.

    If an analysis declares ``Ranks: independent`` and the ranks have at least :data:`APART_EVENTS`
    events, each rank is queried separately. Memory then does not grow with the number of ranks, and
    each rank is sorted separately (3/4 of the time for 15 M events in 8 ranks).
    """
    if not _has_independent_ranks(analysis):
        return [{}]
    wanted = requested_sizes(sizes, values)
    if len(wanted) < 2 or sum(events for *_, events in wanted) < APART_EVENTS:
        return [{}]
    return [{"runs": [run], "ranks": [rank]} for run, rank, _ in wanted]


def concatenated(tables: Sequence[pa.Table], analysis: SqlObject | None) -> pa.Table:
    """Return the rows of partitions as one table, in the row order of the analysis."""
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    if len(tables) == 1:
        return tables[0]
    whole = pa.concat_tables(tables)
    if analysis is None or not interleaves_ranks(analysis):
        return whole
    terms = first_terms(analysis)
    return whole.sort_by([(t.name, "descending" if t.falls else "ascending") for t in terms])


def interleaves_ranks(analysis: SqlObject) -> bool:
    """Return whether an analysis with independent ranks has other sort columns before the rank."""
    second = [term.name for term in first_terms(analysis)][1:2]
    return _has_independent_ranks(analysis) and second != ["rank"]


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


def tasks(analysis: SqlObject, wanted: list[Size]) -> list[Scope]:
    """Partition a query for an executor: a task gets whole runs, or some ranks of a large run.

    Small ranks are grouped, because planning a query for each rank would cost more than a single
    query.
    """
    share = max(LEAST_EVENTS, sum(events for *_, events in wanted) // MOST_TASKS)
    found: list[Scope] = []
    room = 0
    for run, ranks in groupby(wanted, key=lambda size: size[0]):
        counts = {rank: events for _, rank, events in ranks}
        events = sum(counts.values())
        if events > share and _has_independent_ranks(analysis):
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


def _has_independent_ranks(analysis: SqlObject) -> bool:
    return analysis.facts.get("Ranks") == "independent"
