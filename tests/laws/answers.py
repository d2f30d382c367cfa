"""Runs every analysis on many runs at once, because an analysis of small runs is mostly planning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import duckdb

from hta_sql.library import sqltext
from hta_sql.library.declared import Column
from hta_sql.library.objects import SqlObject, load_library

PAIRS = frozenset(
    {"comparability", "comparison", "predictions", "serving_comparison", "trace_diff"}
)
"""Analyses that compare the second of the given runs with the first."""

SERIES = frozenset({"kpi_trends"})
"""Analyses that compare all runs, so that a run has no answer of its own."""

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Answer:
    """The rows of an analysis for one run, without the column ``run``; or why there are none."""

    columns: tuple[Column, ...]
    rows: Sequence[Row]
    error: str = ""

    def column(self, name: str) -> list[Any]:
        """Return the values of a column."""
        at = next(at for at, column in enumerate(self.columns) if column.name == name)
        return [row[at] for row in self.rows]


Answers = Mapping[str, Mapping[str, Answer]]
"""Analysis ─▶ run ─▶ answer."""


class Asked(dict[str, Answer]):
    """Answers of an analysis by run, which are computed when they are read and not kept."""

    def __init__(self, ask: Callable[[str], Answer]) -> None:
        super().__init__()
        self.ask = ask

    def __missing__(self, run: str) -> Answer:
        """Run the analysis on a run."""
        return self.ask(run)


def answers_of(
    con: duckdb.DuckDBPyConnection,
    scales: Mapping[str, int],
    names: Iterable[str] = (),
    *,
    one_by_one: bool = False,
) -> Iterator[tuple[str, dict[str, Answer]]]:
    """Yield the name of every analysis that has an answer for each run, with its answers by run.

    Parameters in ns are multiplied by the scale of the run, as its times are.

    Args:
        con: A catalog.
        scales: Run ─▶ factor of its times.
        names: Analyses to run; default: all.
        one_by_one: Whether the answers for all runs together do not fit into memory.
    """
    for about in load_library().newest():
        if about.base_name in PAIRS | SERIES or (names and about.base_name not in set(names)):
            continue
        if one_by_one:
            yield about.base_name, Asked(partial(_answer, con, about, scales))
        else:
            yield about.base_name, _answers(con, about, scales)


def _answer(
    con: duckdb.DuckDBPyConnection, about: SqlObject, scales: Mapping[str, int], run: str
) -> Answer:
    return _answers(con, about, {run: scales[run]})[run]


def comparisons_of(
    con: duckdb.DuckDBPyConnection, pairs: Mapping[str, tuple[str, str]], scales: Mapping[str, int]
) -> Answers:
    """Run every analysis of two runs on each pair.

    Args:
        con: A catalog.
        pairs: Name of the pair ─▶ its runs.
        scales: Name of the pair ─▶ factor of its times.
    """
    return {
        name: {
            pair: _asked(con, load_library().find(name), runs, scales[pair])["*"]
            for pair, runs in pairs.items()
        }
        for name in sorted(PAIRS)
    }


def _answers(
    con: duckdb.DuckDBPyConnection, about: SqlObject, scales: Mapping[str, int]
) -> dict[str, Answer]:
    found: dict[str, Answer] = {}
    for scale, runs in _groups(about, scales):
        answers = _asked(con, about, runs, scale)
        if "*" in answers and answers["*"].error and len(runs) > 1:
            for run in runs:  # find the run that fails
                alone = _asked(con, about, [run], scale)
                found[run] = alone.get(run) or alone.get("*") or answers["*"]
            continue
        whole = answers.get("*")
        for run in runs:
            found[run] = whole or answers.get(run) or Answer(columns_of(about), [])
    return found


def _groups(about: SqlObject, scales: Mapping[str, int]) -> Iterator[tuple[int, list[str]]]:
    if not any(_is_time(parameter.name) for parameter in about.parameters):
        yield 1, list(scales)
        return
    for scale in sorted(set(scales.values())):
        yield scale, [run for run, one in scales.items() if one == scale]


def _is_time(parameter: str) -> bool:
    return parameter.endswith("_ns")


def _asked(
    con: duckdb.DuckDBPyConnection, about: SqlObject, runs: Sequence[str], scale: int
) -> dict[str, Answer]:
    """Return the answers by run; one under ``*`` if the analysis fails or has no column run."""
    given = {"runs": sqltext.literal_list(runs)}
    for parameter in about.parameters:
        if _is_time(parameter.name) and parameter.default not in ("NULL", None):
            given[parameter.name] = str(int(parameter.default) * scale)
    try:
        result = con.execute(sqltext.call(about.name, given))
        names = [column[0] for column in result.description or ()]
        rows = result.fetchall()
    except duckdb.Error as error:
        return {"*": Answer((), [], f"{type(error).__name__}: {str(error).splitlines()[0]}")}
    columns = columns_of(about)
    if "run" not in names or about.base_name in PAIRS:
        return {"*": Answer(columns, rows)}
    at = names.index("run")
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[at], []).append(row[:at] + row[at + 1 :])
    return {run: Answer(columns, found[run]) for run in found}


@cache
def columns_of(about: SqlObject) -> tuple[Column, ...]:
    """Return the columns of an answer."""
    of_pair = about.base_name in PAIRS
    return tuple(column for column in about.columns if of_pair or column.name != "run")
