"""Orders the columns of a table by importance, for pages too narrow for all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import pyarrow as pa

from hta_sql.library.objects import SqlObject
from hta_sql.report.row_selection import order_of
from hta_sql.results.cells import column_unit
from hta_sql.results.display import is_number
from hta_sql.results.fitting import SENTENCES, is_sentence

_NAMES = 2
"""Number of name columns before the first time column."""
_MORE = 0.2
"""Minimum share of rows that another name column must distinguish additionally."""
_BESIDE_REASONS = 4

ANSWERS = frozenset({"message", "next_analysis", "reason"})
"""Columns that explain the numbers."""

CODES = frozenset({"message_code", "reason_code", "about_code"})
"""Columns of codes for programs; the corresponding messages are in other columns."""

_BESIDE_SENTENCES = 4
"""Number of other columns that take precedence over sentences that are not answers."""

_ID = re.compile(r"(?:^|_)(?:id|pid|tid)$")
_POINT = re.compile(r"(?:^|_)(?:start_ns|end_ns|ts)$")


def places(table: pa.Table, analysis: SqlObject | None) -> dict[str, int]:
    """Return the position of each column on a narrow page, by importance."""
    names = _telling_first(table.schema)
    same = {n for n in names if table.num_rows > 1 and len(table.column(n).unique()) == 1}
    names.sort(key=lambda name: (name in same, bool(_ID.search(name)), bool(_POINT.search(name))))
    # The reason why a number is missing matters less than the numbers.
    if "reason" in names and "reason" not in same:
        names.remove("reason")
        names.insert(_BESIDE_REASONS, "reason")
    # On a page, the message already links to the next analysis.
    names.sort(key=lambda name: name == "next_analysis")
    first = names[:_NAMES]
    if not SENTENCES & set(first):
        whole = {"name"} if "short_name" in names else set()
        first = _telling_apart(table, names, SENTENCES | same | whole, analysis)
        first += _about(names, first, table, analysis)
    return {name: place for place, name in enumerate(dict.fromkeys([*first, *names]))}


def _telling_first(schema: pa.Schema) -> list[str]:
    """Sort names: the first column and answers, a few others, sentences, then the rest.

    A full name comes last if its short name is present. Message codes always come last, because
    their message says more.
    """
    first, *names = schema.names
    codes = [name for name in names if name in CODES]
    whole = ["name"] if "short_name" in schema.names and "name" in names else []
    rest = [name for name in names if name not in {*codes, *whole}]
    answers = [name for name in rest if name in ANSWERS]
    sentences = [name for name in rest if name not in ANSWERS and _is_sentence(schema, name)]
    others = [name for name in rest if name not in {*answers, *sentences}]
    few, more = others[:_BESIDE_SENTENCES], others[_BESIDE_SENTENCES:]
    return [first, *answers, *few, *sentences, *more, *whole, *codes]


def _is_sentence(schema: pa.Schema, name: str) -> bool:
    return is_sentence(name) and not is_number(schema.field(name).type)


def _telling_apart(
    table: pa.Table, names: Sequence[str], but: AbstractSet[str], analysis: SqlObject | None
) -> list[str]:
    """Return the first columns, plus further names and ids needed to distinguish rows."""
    ids = [
        n
        for n in names
        if not is_number(table.schema.field(n).type) or column_unit(n, analysis) == "id"
    ]
    parts = {n: [str(v) for v in table.column(n).to_pylist()] for n in {*names[:_NAMES], *ids}}

    def distinct_count(*chosen: str) -> int:
        return len(set(zip(*(parts[n] for n in chosen), strict=True)))

    first = [
        n
        for n in names[:_NAMES]
        if n == names[0] or n not in ids or distinct_count(names[0], n) > distinct_count(names[0])
    ]
    for name in ids:
        if len(first) > _NAMES or distinct_count(*first) == table.num_rows:
            break
        if (
            not {name} & {*first, *but}
            and distinct_count(*first, name) >= distinct_count(*first) + _MORE * table.num_rows
        ):
            first.append(name)
    return first


def _about(
    names: Sequence[str], first: Sequence[str], table: pa.Table, analysis: SqlObject | None
) -> list[str]:
    """Return the most important columns of the table.

    These are the columns named after the analysis, the descending sort key (or else a time), and a
    percentage.
    """
    last = analysis.base_name.rpartition("_")[2].removesuffix("s") if analysis else ""
    units = {name: column_unit(name, analysis) for name in names}
    counted = [n for n in names if units[n] in {"ns", "bytes", "count", "%"}]
    own = [n for n in counted if n.rpartition("_")[0] == last and units[n] != "count"]
    falling = [t.name for t in order_of(analysis, table) if t.falls and t.name in counted]
    times = [n for n in names if units[n] == "ns" and not _POINT.search(n)]
    if any(units[n] == "ns" for n in first):
        times = []
    took = (falling or times)[:1]
    shares = [n for n in counted if units[n] == "%" and not own]
    shares.sort(key=lambda n: n.removesuffix("_pct") not in {t.removesuffix("_ns") for t in took})
    return [*own[:1], *took, *shares[:1]]
