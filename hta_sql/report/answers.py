"""Runs the analyses of a report: those of the first screen by name, then one for each section.

No other module of the report reads a store: rendering only gets results. In a small store, an
analysis is mostly planning, for which the engine uses one thread, so two analyses run at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import pyarrow as pa

from hta_sql.errors import HtaSqlError, QueryError
from hta_sql.library import sqltext
from hta_sql.library.objects import Library, load_library
from hta_sql.library.parameters import taken_by
from hta_sql.report.contents import Section, Topic, topics
from hta_sql.report.first_screen import (
    ANALYSES,
    LINKED,
    PANELS,
    FirstScreen,
    named_by,
)
from hta_sql.report.reasons import failed, no_rows, not_run, nothing_known
from hta_sql.results.result import Result
from hta_sql.store.query.trace_store import TraceStore

FEW_EVENTS = 500_000
"""Events up to which two analyses run at a time.

Larger analyses use all cores and the memory limit by themselves.
"""

Progress = Callable[[str, int, int], None]
"""Called before each analysis with its name, the number of finished analyses and the total."""


Item = TypeVar("Item")

Value = TypeVar("Value")


@dataclass(frozen=True)
class Scope:
    """The scope of a report.

    Attributes:
        given: The parameters ``runs`` and ``ranks``, if the caller restricted them.
        runs: Names of the runs.
        rank_count: Number of ranks.
    """

    given: Mapping[str, Any]
    runs: Sequence[str]
    rank_count: int


@dataclass(frozen=True)
class Answer:
    """The result from which a section is rendered.

    Attributes:
        section: The section.
        values: Parameters of the section's analysis.
        result: Rows of the analysis; None if there is nothing to show.
        reason: Why there is nothing to show.
        is_failed: Whether the engine failed to compute it.
    """

    section: Section
    values: Mapping[str, Any]
    result: Result | None
    reason: str = ""
    is_failed: bool = False


@dataclass(frozen=True)
class Answers:
    """All results from which a report is rendered.

    Attributes:
        scope: Scope of the report.
        first: The results of the first screen.
        contents: The topics.
        omitted: Sections that are left out, because nothing points to them.
        sections: An answer for each other section, in topic order. They are computed lazily, so that the
            rows of few sections are in memory.
    """

    scope: Scope
    first: FirstScreen
    contents: Sequence[Topic]
    omitted: Sequence[Section]
    sections: Iterable[Answer]


def main_tables(library: Library) -> list[str]:
    """Return the analyses whose rows a page shows for every job, in page order."""
    sections = [section for topic in topics(library) for section in topic.sections]
    return [*PANELS, *(s.name for s in sections if s.is_main and s.has_table)]


def answers_of(
    store: TraceStore,
    runs: Iterable[str] | None,
    ranks: Iterable[int] | None,
    progress: Progress,
    *,
    everything: bool = False,
) -> Answers:
    """Run the analyses that a report needs.

    Args:
        store: The store.
        runs: Runs to include; None: all.
        ranks: Ranks to include; None: all.
        everything: Whether to run the analyses of all sections, not only of the main ones and those
            that the first screen names.
        progress: Called before each analysis.

    Raises:
        RankError: A requested run or rank is not in the store.
    """
    contents = topics(store.library)
    limits: dict[str, Any] = {"runs": list(runs or ()), "ranks": list(ranks or ())}
    given = {name: values for name, values in limits.items() if values}
    scope = Scope(
        given, given.get("runs") or store.runs(), len(given.get("ranks") or store.ranks())
    )
    sections = [section for topic in contents for section in topic.sections]
    progress("the first screen", 0, 1 + len(sections))
    first = first_screen(store, given)
    named = {*LINKED, *ANALYSES, *named_by(first)}
    omitted = [] if everything else [s for s in sections if not s.is_main and s.name not in named]
    sections = [section for section in sections if section not in omitted]
    answers = _sections(store, sections, scope, first, progress)
    return Answers(scope, first, contents, omitted, answers)


def first_screen(store: TraceStore, given: Mapping[str, Any]) -> FirstScreen:
    """Run the analyses of the first screen, each with those given parameters that it accepts."""
    library = load_library()
    failures: dict[str, str] = {}

    def result_of(name: str) -> Result:
        analysis = library.find(name)
        try:
            return store.run(name, **taken_by(analysis, given))
        except QueryError as error:  # costs only what is shown of this analysis
            failures[name] = failed(analysis, error)
            return Result.of_rows(pa.table({c.name: [] for c in analysis.columns}), analysis)

    jobs = result_of("jobs")
    # Start with the slowest.
    names = sorted({*ANALYSES} - {"jobs"}, key=lambda name: (name != "advice", name))
    results = computed_ahead(result_of, names, _threads(jobs))
    found = dict(zip(names, results, strict=True))
    return FirstScreen(jobs=jobs, **found, failures=dict(sorted(failures.items())))


def _threads(jobs: Result) -> int:
    """Return the number of analyses to run at a time, by the number of events."""
    return 2 if sum(job["event_count"] or 0 for job in jobs.records()) <= FEW_EVENTS else 1


def _sections(
    store: TraceStore,
    sections: Sequence[Section],
    scope: Scope,
    first: FirstScreen,
    progress: Progress,
) -> Iterator[Answer]:
    @cache
    def has_rows(relation: str) -> bool:
        return bool(store.sql(sqltext.has_rows(relation)).rows()[0][0])

    def one(section: Section) -> Answer:
        return answer_of(store, section, scope, first, has_rows)

    with closing(computed_ahead(one, sections, _threads(first.jobs))) as answers:
        for done, section in enumerate(sections, 1):
            progress(section.name, done, len(sections) + 1)
            yield next(answers)


def answer_of(
    store: TraceStore,
    section: Section,
    scope: Scope,
    first: FirstScreen,
    has_rows: Callable[[str], bool],
) -> Answer:
    """Return the rows of a section or the reason why there are none; reuse first-screen results.

    Args:
        store: The store.
        section: The section.
        scope: Scope of the report.
        first: The results of the first screen.
        has_rows: Returns whether a table or an analysis has rows. Planning analyses of empty tables
            would take a quarter of the time of a report on a small store.
    """
    try:
        return _found(store, section, scope, first, has_rows)
    except QueryError as error:
        reason, is_failed = failed(section.analysis, error), True
    except HtaSqlError as error:
        reason, is_failed = f"Not available: {error}", False
    return Answer(section, _values(section, scope), None, reason, is_failed)


def _values(section: Section, scope: Scope) -> dict[str, Any]:
    """Return the parameters with which a section's analysis is run."""
    return taken_by(section.analysis, {**section.parameters, **scope.given})


def _found(
    store: TraceStore,
    section: Section,
    scope: Scope,
    first: FirstScreen,
    has_rows: Callable[[str], bool],
) -> Answer:
    analysis, values = section.analysis, _values(section, scope)
    if reason := not_run(section, values, len(scope.runs), scope.rank_count):
        return Answer(section, values, None, reason)
    if section.relations and not any(map(has_rows, section.relations)):
        return Answer(section, values, None, no_rows(analysis, first.rank_health.records()))
    if reason := first.failures.get(analysis.base_name, ""):
        return Answer(section, values, None, reason, is_failed=True)
    result: Result | None = getattr(first, analysis.base_name, None)
    if result is None:
        result = store.run(analysis.base_name, version=analysis.version, **values)
    if not len(result):
        return Answer(section, values, None, no_rows(analysis, first.rank_health.records()))
    reason = nothing_known(section, result)
    return Answer(section, values, None if reason else result, reason)


def computed_ahead(
    function: Callable[[Item], Value], items: Iterable[Item], threads: int
) -> Generator[Value, None, None]:
    """Yield ``function(item)`` for each item, in order.

    At most ``threads + 1`` values are computed or waiting for the consumer. If the consumer stops,
    values that are not being computed yet are canceled.

    Args:
        function: Thread-safe function.
        items: The items.
        threads: Number of threads. With 1, a value is computed while the previous one is consumed.

    Raises:
        Exception: What the function raised for the item that is due.
    """
    pool = ThreadPoolExecutor(threads)
    ahead: deque[Future[Value]] = deque()
    try:
        for item in items:
            ahead.append(pool.submit(function, item))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
