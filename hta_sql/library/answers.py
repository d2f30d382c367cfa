"""Determines which answers can be materialized per run, what defines them, and their row order.

An answer is the result of an analysis with default arguments. A run's answer can be materialized
if it equals that run's rows of the answer for all runs. This holds for every analysis with a column
``run``, unless its header has a fact ``Materialized`` with a reason. User analyses are never
materialized.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from hta_sql.library.arguments import argument_columns
from hta_sql.library.definitions import tokens
from hta_sql.library.messages import message_rows
from hta_sql.library.objects import Library, SqlObject

DIRECTIONS = {"desc", "asc", "nulls", "first", "last"}
ORDERING = {
    *DIRECTIONS,
    *("false", "true"),
    *("coalesce", "abs", "array_position", "list_position"),
}
"""Words in an ORDER BY clause that are not column names."""


class Term(NamedTuple):
    """A sort column, and whether it is descending."""

    name: str
    falls: bool


@lru_cache(maxsize=4)
def answers(library: Library) -> dict[str, SqlObject]:
    """Return name ─▶ analysis for all analyses whose answer can be materialized.

    Of several versions, the one that the unversioned view reads is included.
    """
    return {about.base_name: about for about in library.base.newest() if is_of_runs(about)}


def is_of_runs(about: SqlObject) -> bool:
    """Return whether the rows of an analysis are the concatenated rows of its runs."""
    return (
        any(column.name == "run" for column in about.columns) and "Materialized" not in about.facts
    )


def columns_of(about: SqlObject) -> dict[str, str]:
    """Return the columns of an answer with their types."""
    return {column.name: column.type for column in about.columns}


def order_of(about: SqlObject) -> str | None:
    """Return the ORDER BY terms of an answer, or None if they use more than its own columns."""
    columns, words = columns_of(about), _order_words(about)
    known = columns.keys() | ORDERING
    if any(word.isidentifier() and not known & {word, word.lower()} for word in words):
        return None
    return " ".join(f'"{word}"' if word in columns else word for word in words) or None


def first_terms(about: SqlObject) -> list[Term]:
    """Return the leading sort columns of an answer, up to the first term that is an expression."""
    terms = []
    for is_comma, (name, *behind) in groupby(_order_words(about), key=",".__eq__):
        if is_comma:
            continue
        directions = {word.lower() for word in behind}
        if name not in columns_of(about) or not directions <= DIRECTIONS:
            break
        terms.append(Term(name, falls="desc" in directions))
    return terms


def _order_words(about: SqlObject) -> list[str]:
    """Return the words of the ORDER BY clause, without table names; ALL becomes the columns."""
    words = tokens(about.text.rpartition("\nORDER BY")[2])
    words = words[:-1] if words[-1:] == [";"] else words
    if words == ["ALL"]:
        return " , ".join(columns_of(about)).split()
    # r.run is the column run
    return [w for at, w in enumerate(words) if w != "." and words[at + 1 : at + 2] != ["."]]


def sql_digest(library: Library, about: SqlObject) -> str:
    """Return a hash of all SQL and messages that an answer depends on."""
    used = library.stands_on(about)
    parts = [definition_digest(one) for one in used]
    # A materialized answer contains messages: changed messages make it stale.
    parts += [repr(message_rows(one.path.parent.parent)) for one in used if one.name == "messages"]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def definition_digest(about: SqlObject) -> str:
    """Return the SHA-256 of an object's file and the CSV next to it, ignoring comments.

    The message catalogue is not included.
    """
    return _definition(about.path, about.text)


@lru_cache(maxsize=4096)
def _definition(path: Path, text: str) -> str:
    """Return the hash of a library file and the rows of its CSV, ignoring comments."""
    data = path.with_suffix(".csv")
    rows = data.read_text(encoding="utf-8") if data.exists() else ""
    if path.name == "argument_columns.sql":
        rows = argument_columns()
    return hashlib.sha256("\n".join([*tokens(text), rows]).encode()).hexdigest()
