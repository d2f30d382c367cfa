"""Check that renamed columns have the values of their old names.

tests/pinned/renames.csv has a line for each renamed analysis (``analysis`` is empty) and for each
renamed column or parameter of an analysis (``analysis`` is its new name).
tests/pinned/respelled.csv has parts of strings whose spelling changed.

``python -m tests.pinned.renames REVISION`` computes all pinned answers, restores the old names, and
compares their digests with those of a git revision before the renames.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import subprocess
import sys
import tempfile
from contextlib import closing
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hta_sql.authoring.golden_engine import GoldenEngine
from hta_sql.library.objects import load_library
from tests.golden_cases import TRACES
from tests.pinned.answers import (
    GOLDEN,
    PLACES,
    Digests,
    file_of,
    opened,
    queries_of,
    read_pinned,
    reduce_of,
    whole_answers,
    whole_of,
    write_runs,
)
from tests.pinned.jobs import make_catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_CALL = re.compile(r"(\w+)(_v\d+\()")
_PARAMETER = re.compile(r"(\w+)(?= := )")

Rows = list[tuple[Any, ...]]


def lines_of(name: str) -> list[dict[str, str]]:
    """Return the lines of a CSV file in this folder."""
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def old_names(analysis: str) -> Mapping[str, str]:
    """Return the old name of each renamed column and parameter of an analysis.

    For an empty name, return the old name of each renamed analysis.
    """
    return {
        line["new"]: line["old"] for line in lines_of("renames.csv") if line["analysis"] == analysis
    }


@cache
def _respelled() -> Mapping[str, str]:
    return {line["new"]: line["old"] for line in lines_of("respelled.csv")}


def old_call(call: str) -> str:
    """Return a call with the old names of its analysis and parameters."""
    found = _CALL.search(call)
    if not found:
        return call
    names = old_names(found[1])
    call = _PARAMETER.sub(lambda match: names.get(match[1], match[1]), call)
    return _CALL.sub(lambda match: old_names("").get(match[1], match[1]) + match[2], call)


def differences(
    call: str, columns: Sequence[str], rows: Rows, reduce: Callable[..., Digests], pinned: Digests
) -> list[str]:
    """Return the digests of an answer that differ, under its old names, from the pinned ones."""
    found = _CALL.search(call)
    names = old_names(found[1] if found else "")
    before = [names.get(column, column) for column in columns]
    respelled = [_old_row(columns, row) for row in rows]
    tries = (reduce(before, rows), reduce(before, respelled))
    return [
        name
        for name in {**tries[1], **pinned}
        if pinned.get(name) not in [digests.get(name, "missing") for digests in tries]
    ]


def _old_row(columns: Sequence[str], row: tuple[Any, ...]) -> tuple[Any, ...]:
    values = dict(zip(columns, map(_old_text, row), strict=True))
    if "finding_id" in values and "subject" in values:
        key = [values[name] for name in ("run", "rank", "rule", "subject")]
        text = "\x1f".join(str(part) for part in key if part is not None)
        values["finding_id"] = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:12]
    return tuple(values.values())


def _old_text(value: Any) -> Any:
    if isinstance(value, str):
        for new, old in _respelled().items():
            value = value.replace(new, old)
    return value


def pinned_in(revision: str, place: str) -> dict[str, Digests]:
    """Return the answers that a git revision pins for a place."""
    path = file_of(place).relative_to(Path(__file__).parents[2]).as_posix()
    done = subprocess.run(  # noqa: S603 - our own arguments
        ["git", "show", f"{revision}:{path}"],  # noqa: S607
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    return read_pinned(io.StringIO(done.stdout))


def _answers(place: str) -> Iterator[tuple[str, Sequence[str], Rows, Callable[..., Digests]]]:
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        if place == GOLDEN:
            cases = whole_answers()
            with closing(GoldenEngine(folder, load_library(), cases.values(), TRACES)) as engine:
                for key, case in cases.items():
                    yield key, *engine.ask(case), whole_of
            return
        make_catalog(folder, write_runs(place, folder / "traces"))
        with opened(folder) as con:
            for query in chain.from_iterable(queries_of(place).values()):
                result = con.execute(query)
                columns = [column[0] for column in result.description or ()]
                yield query, columns, result.fetchall(), reduce_of(place)


def main(revision: str, places: Sequence[str]) -> None:
    """Compare the current answers with those that a revision pins."""
    for place in places:
        before = pinned_in(revision, place)
        counts = {"same": 0, "other": 0, "new": 0}
        for call, columns, rows, reduce in _answers(place):
            pinned = before.get(old_call(call))
            wrong = differences(call, columns, rows, reduce, pinned) if pinned else []
            counts["new" if not pinned else "other" if wrong else "same"] += 1
            if wrong or not pinned:
                sys.stdout.write(f"{place}: {call}: {', '.join(wrong) or 'not pinned before'}\n")
        sys.stdout.write(f"{place}: {counts}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or (*PLACES, GOLDEN))
