"""Digests of what each analysis returns for the pinned jobs: one per column and one per run.

A place is a set of runs whose answers are pinned in one file. ``python -m tests.pinned.answers
[PLACE ...]`` rewrites the digests after a change that is intended to change numbers. Its commit
message must name the changed columns and the reason.
"""

from __future__ import annotations

import csv
import hashlib
import re
import sys
import tempfile
from contextlib import closing
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from hta_sql.authoring.golden_engine import GoldenEngine
from hta_sql.library.messages import SENTENCES
from hta_sql.library.objects import load_library
from hta_sql.library.sqltext import call
from hta_sql.store.catalog.template import CONFIG
from tests.golden_cases import TRACES, all_cases
from tests.pinned.crowds import write_planted_jobs, write_tiny
from tests.pinned.jobs import CATALOG, make_catalog, write_jobs
from tests.pinned.words import write_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hta_sql.authoring.golden import Case
    from hta_sql.library.declared import Parameter
    from hta_sql.library.objects import SqlObject
    from tests.pinned.jobs import Runs

JOBS, ADVICE, TINY, PLANTED, WORDS, GOLDEN = (
    "jobs",
    "advice",
    "tiny",
    "planted",
    "words",
    "golden",
)
"""Names of the places.

In order, they are the jobs of tests/pinned/jobs.py, the steps of tests/test_advice.py, both sets of
tests/pinned/crowds.py, the jobs of tests/pinned/words.py, and the cases of tests/golden, each with
its own traces.
"""

CROWDS = (TINY, PLANTED, WORDS)
"""Places with so many runs that an answer is pinned as one digest."""

PLACES = (JOBS, ADVICE, *CROWDS)
"""Places whose runs are in one catalog."""

OTHER_VALUES: Mapping[str, str] = {
    "ranks": "[0, 1, 3]",
    "num_kernels": "3",
    "link_gbps": "400",
    "custom_peak_tflops": "100",
    "custom_peak_tbps": "2",
    "max_points": "20",
    "bucket_count": "7",
    "event_ids": "[0, 5, 40, 41, 42]",
    "level": "'module'",
    "only_side": "'device'",
    "annotation": "'ProfilerStep'",
    "last_instance": "1",
}
"""Parameter ─▶ its value in the second call; other parameters are negated, halved or omitted."""

COMPUTED_HERE = ("source", "path", "store")
"""Columns that contain paths, which are not pinned.

Messages are not pinned either, because their wording may be corrected at any time.
"""

Digests = dict[str, str]
"""``rows`` ─▶ the row count; ``column NAME`` and ``run NAME`` ─▶ a digest."""


def calls_of(analysis: SqlObject, *, each: bool = False) -> list[str]:
    """Return calls to an analysis: one with its defaults, and one with all parameters changed.

    Args:
        analysis: The analysis.
        each: Whether to add calls in which only one parameter is changed, one for each parameter.
    """
    others = {p.name: value for p in analysis.parameters if (value := _other(p))}
    alone = [{name: value} for name, value in others.items()] if each else []
    calls = [call(analysis.name, given) for given in ({}, others, *alone)]
    return list(dict.fromkeys(calls))


def _other(parameter: Parameter) -> str:
    default = parameter.default or "NULL"
    flags = {"true": "false", "false": "true"}
    if parameter.name in OTHER_VALUES or default in flags:
        return OTHER_VALUES.get(parameter.name) or flags[default]
    if parameter.type == "BIGINT" and default.isdigit():
        return str(int(default) // 2 + 1)
    if parameter.type == "DOUBLE" and default != "NULL":
        return str(float(default) / 2 or 1.0)
    return ""


def whole_of(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Digests:
    """Reduce an answer to its row count and one digest of all columns."""
    return _as_one(digests_of(columns, rows))


def _as_one(found: Digests) -> Digests:
    parts = [f"{what}={digest}" for what, digest in found.items() if not what.startswith("run ")]
    return {"rows": found["rows"], "all columns": _digest(parts)}


def digests_of(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Digests:
    """Reduce an answer to digests, which depend on the order of its rows."""
    kept = [at for at, name in enumerate(columns) if name not in (*COMPUTED_HERE, *SENTENCES)]
    lines = [[plain(row[at]) for at in kept] for row in rows]
    found = {"rows": str(len(rows))}
    for place, at in enumerate(kept):
        found[f"column {columns[at]}"] = _digest([line[place] for line in lines])
    if "run" in columns:
        runs = [row[columns.index("run")] for row in rows]
        for run in sorted(set(runs) - {None}):
            of_run = [line for name, line in zip(runs, lines, strict=True) if name == run]
            found[f"run {run}"] = _digest(of_run)
    return found


def plain(value: Any) -> str:
    """Format a value, rounding floats to six digits because threads sum them in arbitrary order."""
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) > 1e-9 else "0"
    if isinstance(value, list):
        return f"[{', '.join(map(plain, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {plain(part)}' for key, part in value.items())}}}"
    return repr(value)


def _digest(values: object) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:5]


def changes(found: Digests, wanted: Digests) -> list[str]:
    """Return the parts of an answer that differ from the pinned ones."""
    return [
        f"{name}: {wanted.get(name, 'not there')} -> {found.get(name, 'not there')}"
        for name in {**wanted, **found}
        if found.get(name) != wanted.get(name)
    ]


@cache
def queries_of(place: str) -> dict[str, list[str]]:
    """Return the queries of a place, by analysis."""
    if place == ADVICE:
        return {"advice_v1": ["FROM advice_v1()"]}
    library = load_library()
    analyses = library.newest()
    if place == PLANTED:
        # Other features of these jobs are covered by the other places.
        (matched,) = (one for one in library.derived if one.base_name == "matched_collectives")
        analyses = [one for one in analyses if matched in library.stands_on(one)]
    return {one.name: calls_of(one, each=place == TINY) for one in analyses}


def reduce_of(place: str) -> Callable[..., Digests]:
    """Return the function that reduces the answers of a place."""
    return whole_of if place in CROWDS else digests_of


def write_runs(place: str, folder: Path) -> Runs:
    """Write the traces of a place."""
    from tests.test_advice import write_steps  # noqa: PLC0415 - a module that pins its answers here

    folder.mkdir(parents=True, exist_ok=True)
    writers: dict[str, Callable[[Path], Runs]] = {
        JOBS: write_jobs,
        ADVICE: write_steps,
        TINY: write_tiny,
        PLANTED: write_planted_jobs,
        WORDS: write_words,
    }
    return writers[place](folder)


def file_of(place: str) -> Path:
    """Return the file with the pinned answers of a place."""
    return Path(__file__).with_name(f"{place}.csv")


def whole_answer(case: Case) -> str:
    """Return the query for all columns and rows of a golden case.

    The query is empty unless the case calls exactly one analysis, its own.
    """
    name = f"{case.path.stem}("
    if _ANALYSIS.findall(case.call) != [name]:
        return ""
    begin = case.call.index(name)
    end, depth, in_text = begin + len(name), 1, False
    while depth:
        sign = case.call[end]
        in_text ^= sign == "'"
        depth += 0 if in_text else (sign == "(") - (sign == ")")
        end += 1
    return f"FROM {case.call[begin:end]}"


_ANALYSIS = re.compile(r"\w+_v\d+\(")


def whole_answers() -> dict[str, Case]:
    """Return key ─▶ a case for the whole answer of each golden case, sorted by traces."""
    found: dict[str, Case] = {}
    for case in sorted(all_cases(), key=lambda case: case.traces):
        if call := whole_answer(case):
            found.setdefault(key_of(case.traces, call), replace(case, call=call))
    return found


def key_of(traces: str, call: str) -> str:
    """Return the key of a call on the traces of a golden case."""
    return f"{call} OF {traces}"


@cache
def pinned(place: str = JOBS) -> dict[str, Digests]:
    """Return the pinned answers of a place, by call."""
    with file_of(place).open(encoding="utf-8", newline="") as file:
        return read_pinned(file)


def read_pinned(lines: Iterable[str]) -> dict[str, Digests]:
    """Parse the lines of a file of pinned answers."""
    return {line["call"]: _parsed(line["answer"]) for line in csv.DictReader(lines)}


def _parsed(answer: str) -> Digests:
    parts = (part.rpartition("=") for part in answer.split("; "))
    return {name: digest for name, _, digest in parts}


def opened(folder: Path) -> duckdb.DuckDBPyConnection:
    """Open the catalog of a folder for reading."""
    return duckdb.connect(str(folder / CATALOG), read_only=True, config=CONFIG)


def answer(con: duckdb.DuckDBPyConnection, query: str, place: str = JOBS) -> Digests:
    """Run a query, and reduce its answer."""
    result = con.execute(query)
    columns = [column[0] for column in result.description or ()]
    return reduce_of(place)(columns, result.fetchall())


def main(places: Sequence[str]) -> None:
    """Pin the current answers of the given places."""
    for place in set(PLACES) & set(places):
        with tempfile.TemporaryDirectory() as top:
            folder = Path(top)
            make_catalog(folder, write_runs(place, folder / "traces"))
            with opened(folder) as con:
                queries = chain.from_iterable(queries_of(place).values())
                _write(place, {query: answer(con, query, place) for query in queries})
    if GOLDEN in places:
        cases = whole_answers()
        with (
            tempfile.TemporaryDirectory() as top,
            closing(GoldenEngine(Path(top), load_library(), cases.values(), TRACES)) as engine,
        ):
            _write(GOLDEN, {key: whole_of(*engine.ask(case)) for key, case in cases.items()})


def _write(place: str, answers: dict[str, Digests]) -> None:
    with file_of(place).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("call", "answer"))
        for query, found in answers.items():
            writer.writerow((query, "; ".join(map("=".join, found.items()))))


if __name__ == "__main__":
    main(sys.argv[1:] or (*PLACES, GOLDEN))
