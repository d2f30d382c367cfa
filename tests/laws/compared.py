"""Compares the answers of a changed job with those that follow from the answers of the job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from hta_sql.library.declared import Column
from hta_sql.library.messages import SENTENCES
from tests.laws.answers import Answer, Row
from tests.laws.effects import Effect, kind_of

NOT_COMPARED = SENTENCES | {
    *("source", "path", "store", "control_run", "test_run"),
    *("evidence_sql", "finding_id", "next_analysis"),
}
"""Columns with sentences, paths and calls, which state times, ranks and ids in their text."""

_RANKS = re.compile(r"\d+|\[\d+(, ?\d+)*\]")

_DIGITS = re.compile(r"\d+")

UNCHANGED = Effect()
EXACT = 1e-9
"""Relative difference of sums that are added in another order."""

ABSOLUTE = 1e-6
SHARE_PCT = 1e-4
"""Change of a share by the rounding of times to whole ns: 1 ns of a millisecond [percentage points]."""


@dataclass(frozen=True)
class Difference:
    """A value that does not follow.

    Attributes:
        column: Name of the column; ``rows`` if the number of rows differs, ``error`` for a failure.
        expected: The value that follows from the answer of the unchanged job.
        found: The value of the changed job.
    """

    column: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.column}: {self.expected} expected, {self.found} found"


def differences(before: Answer, after: Answer, effect: Effect) -> Iterator[Difference]:
    """Yield the values of an answer that do not follow, at most one per column.

    Args:
        before: Answer for the job.
        after: Answer for the changed job.
        effect: Effect of the change.
    """
    if after.error or before.error:
        if after.error:
            yield Difference("error", before.error or "rows", after.error)
        return
    kept = [at for at, column in enumerate(before.columns) if column.name not in NOT_COMPARED]
    columns = [before.columns[at] for at in kept]
    expected = [_expected([row[at] for at in kept], columns, effect) for row in before.rows]
    found = [tuple(row[at] for at in kept) for row in after.rows]
    if len(expected) != len(found):
        yield Difference("rows", f"{len(expected)} rows", f"{len(found)} rows")
        return
    differing = [] if not effect.is_ordered else list(_unequal(columns, expected, found, effect))
    if (differing and effect.scale != 1) or not effect.is_ordered:
        # Multiplied times that were equal only by rounding are in another order.
        key = _key_of(columns)
        of_sets = list(_unequal(columns, sorted(expected, key=key), sorted(found, key=key), effect))
        differing = differing if of_sets and effect.is_ordered else of_sets
    yield from differing


def _unequal(
    columns: Sequence[Column], expected: Sequence[Row], found: Sequence[Row], effect: Effect
) -> Iterator[Difference]:
    """Yield the first difference in each column."""
    for at, column in enumerate(columns):
        close = _close(column, effect)
        for left, right in zip(expected, found, strict=True):
            if not close(left[at], right[at]):
                yield Difference(column.name, _short(left[at]), _short(right[at]))
                break


RANK_OF_EVENT = {"send_id": "src_rank", "recv_id": "dst_rank"}
"""Column with an event ─▶ the column with its rank, unless that is ``rank``."""


def _expected(row: Sequence[Any], columns: Sequence[Column], effect: Effect) -> Row:
    of_row = {column.name: value for value, column in zip(row, columns, strict=True)}
    return tuple(
        _followed(
            value, kind_of(column), effect, of_row.get(RANK_OF_EVENT.get(column.name, "rank"))
        )
        for value, column in zip(row, columns, strict=True)
    )


def _followed(value: Any, kind: str, effect: Effect, rank: Any) -> Any:
    if isinstance(value, list):
        return [_followed(part, kind, effect, rank) for part in value]
    if isinstance(value, str):
        return _with_other_numbers(value, kind, effect.ids)
    if not _is_number(value):
        return value
    if kind in ("time", "point"):
        return value * effect.scale
    new = effect.events.get(rank, {}) if kind == "event" else effect.ids.get(kind, {})
    return new.get(value, value)


def _with_other_numbers(text: str, kind: str, ids: Mapping[str, Mapping[int, int]]) -> str:
    """Replace ids in a text: in lists of ranks, and after the words rank and stream."""
    if "rank" in ids and kind == "ranks" and _RANKS.fullmatch(text):
        old = [int(rank) for rank in re.findall(r"\d+", text)]
        new = iter(sorted(ids["rank"].get(rank, rank) for rank in old))
        return re.sub(r"\d+", lambda _: str(next(new)), text)
    for word in ("rank", "stream"):
        if word in ids:
            text = re.sub(rf"\b{word} \d+( to \d+)?", partial(_with_ids, ids[word]), text)
    return text


def _with_ids(new: Mapping[int, int], found: re.Match[str]) -> str:
    return _DIGITS.sub(lambda digits: str(new.get(int(digits[0]), digits[0])), found[0])


def _key_of(columns: Sequence[Column]) -> Callable[[Row], tuple[str, ...]]:
    """Return the sort key of rows that are compared as a set: exact values, then rounded ones."""
    exact = [
        at
        for at, column in enumerate(columns)
        if kind_of(column) not in ("time", "point", "rate") and column.type != "DOUBLE"
    ]
    rest = [at for at in range(len(columns)) if at not in exact]

    def key(row: Row) -> tuple[str, ...]:
        return tuple(repr(row[at]) for at in exact) + tuple(_rounded(row[at]) for at in rest)

    return key


def _rounded(value: Any) -> str:
    return f"{value:.5g}" if _is_number(value) else repr(value)


def _close(column: Column, effect: Effect) -> Callable[[Any, Any], bool]:
    kind = kind_of(column)
    is_time = kind in ("time", "point")
    is_exact = effect.scale == 1 and effect.relative == UNCHANGED.relative
    relative = EXACT if is_exact else effect.relative
    slack = ABSOLUTE
    if not is_exact and is_time:
        slack = effect.slack_ns * effect.scale
    elif not is_exact and kind == "share":
        slack = SHARE_PCT

    def close(left: Any, right: Any) -> bool:
        if isinstance(left, list) and isinstance(right, list):
            return len(left) == len(right) and all(map(close, left, right))
        if isinstance(left, dict) and isinstance(right, dict):
            return left.keys() == right.keys() and all(close(left[k], right[k]) for k in left)
        if left == right or not (_is_number(left) and _is_number(right)):
            return bool(left == right)
        if isinstance(left, int) and isinstance(right, int) and (is_exact or not is_time):
            return False
        near = [left, left / effect.scale] if kind == "rate" else [left]
        return any(
            abs(one - right) <= max(slack, relative * max(abs(one), abs(right)))
            or (one != one and right != right)  # noqa: PLR0124 (NaN)
            for one in near
        )

    return close


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def verdicts(
    answers: Mapping[str, Mapping[str, Answer]], run: str, effect: Effect = UNCHANGED
) -> dict[str, set[Row]]:
    """Return what the answers for a run accuse after a change: ranks and links, with verdicts."""
    found: dict[str, set[Row]] = {}
    for analysis in answers.keys() & ACCUSES.keys():
        answer = answers[analysis][run]
        columns = [column for column in answer.columns if column.name in ACCUSES[analysis]]
        parts = [answer.column(column.name) for column in columns]
        rows = {_expected(row, columns, effect) for row in zip(*parts, strict=True)}
        found[analysis] = {row for row in rows if row[1] not in INNOCENT}
    return found


ACCUSES = {"stragglers": ("rank", "verdict"), "slow_links": ("link_ranks", "verdict")}
"""Analysis ─▶ its columns with whom it accuses, and the verdict."""

INNOCENT = ("none", "unknown", None)
"""Verdicts that accuse nobody."""
