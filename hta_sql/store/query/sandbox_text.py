"""Limits on the text of an untrusted query, checked before the engine parses it.

The tokens come from the engine's own tokenizer, which takes linear time and does not recurse. The
engine's parser recurses, and copies the operand of ``CASE x WHEN`` into each arm. If a syntax error
follows, it reads the body of a nested WITH up to eight times per level.

The limits were measured on DuckDB 2.0 with a stack of 512 KiB, a sixteenth of a thread's stack on
Linux. The parser crashes at 3,000 unary operators, 10,000 DESCRIBE, 10,000 EXCEPT branches or
20,000 joins. Regardless of the stack size, twelve nested ``CASE x`` with three arms each, or eight
nested WITH, take longer than 8 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import duckdb

from hta_sql.errors import QueryError

MOST_BYTES = 100_000
"""Maximum length of a query [bytes]."""
MOST_TOKENS = 10_000
"""Maximum number of words, numbers, strings and symbols in a query, not counting comments."""
MOST_JOINS = 500
"""Maximum number of JOIN keywords."""
MOST_BRACKETS = 60
"""Maximum number of brackets and CASE expressions that are open at the same time."""
MOST_IN_A_ROW = 60
"""Maximum number of operators without a value in between: ``- - …``, ``NOT NOT …``."""
MOST_PARSED = 50_000
"""Maximum number of tokens that the parser reads, including repeats for nested WITH and CASE."""

READINGS_OF_WITH = 8
"""Maximum number of times that the parser reads the body of a WITH inside another WITH."""

_CLOSERS = {")": "(", "]": "[", "}": "{"}
_BRACKETS = {"(", "[", "{", *_CLOSERS}
_PREFIXES = {"NOT", "DESC", "DESCRIBE", "SHOW", "SUMMARIZE"}
"""Keywords that, like prefix operators, may be repeated."""


@dataclass
class _Open:
    """An open bracket or CASE.

    Attributes:
        mark: The bracket, or CASE; empty for the whole text.
        parsed: Number of tokens so far, including repeated reads and copies by the parser.
        before: Value of ``parsed`` at the opening token.
        arms: Number of WHEN arms of a CASE.
        operand: Number of tokens between CASE and its first WHEN.
        has_with: Whether a WITH is directly inside it, not inside a nested bracket.
    """

    mark: str
    parsed: int = 0
    before: int = 0
    arms: int = 0
    operand: int = 0
    has_with: bool = False


def check_text(text: str) -> None:
    """Check that the engine can parse a query quickly and without a stack overflow.

    Raises:
        QueryError: The query exceeds a limit, or is not valid Unicode.
    """
    try:
        encoded = text.encode()
    except UnicodeError as error:
        raise QueryError(str(error)) from error
    if len(encoded) > MOST_BYTES:
        raise QueryError(
            f"The query has {len(encoded):,} bytes; at most {MOST_BYTES:,} are allowed."
        )
    tokens = tokens_of(text)
    if len(tokens) > MOST_TOKENS:
        raise QueryError(
            f"The query has {len(tokens):,} words and symbols; at most {MOST_TOKENS:,} are allowed."
        )
    joins = sum(word == "JOIN" for _, word, _ in tokens)
    if joins > MOST_JOINS:
        raise QueryError(f"The query has {joins:,} joins; at most {MOST_JOINS:,} are allowed.")
    _check_nesting(tokens)


def tokens_of(text: str) -> list[tuple[int, str, bool]]:
    """Split a query into the engine's tokens, without comments.

    Returns:
        For each token, its offset [bytes], its text in upper case, and whether it is a keyword or
        an operator.
    """
    encoded = text.encode()
    try:
        marks = duckdb.tokenize(text)
    except duckdb.Error as error:
        raise QueryError(str(error)) from error
    kinds = duckdb.token_type
    acting = (kinds.keyword, kinds.operator)
    return [
        (start, encoded[start:end].decode(errors="replace").strip().upper(), kind in acting)
        for (start, kind), (end, _) in pairwise([*marks, (len(encoded), None)])
        if kind is not kinds.comment
    ]


def _check_nesting(tokens: list[tuple[int, str, bool]]) -> None:
    opened = [_Open("")]
    row, price = 0, 1
    for _, word, acts in tokens:
        in_row = word in _PREFIXES or not (word.isidentifier() or word in _BRACKETS)
        row = row + 1 if acts and in_row else 0
        if row > MOST_IN_A_ROW:
            raise QueryError(f"The query has more than {MOST_IN_A_ROW} operators in a row.")
        opened[-1].parsed += price
        if _read(word, acts, opened):
            price = READINGS_OF_WITH ** max(0, sum(item.has_with for item in opened) - 1)
            if len(opened) - 1 > MOST_BRACKETS:
                raise QueryError(
                    f"The query is nested too deeply: more than {MOST_BRACKETS} nested brackets "
                    "and CASE expressions."
                )
        if opened[-1].parsed > MOST_PARSED:
            raise QueryError(
                "The query takes too long to parse. Avoid nested WITH clauses, write CASE WHEN x = "
                "… instead of CASE x WHEN …, or split the query."
            )


def _read(word: str, acts: bool, opened: list[_Open]) -> bool:
    """Update the open brackets and CASE expressions; return whether ``price`` may have changed."""
    last = opened[-1]
    if word in ("(", "[", "{") or (acts and word == "CASE"):
        # The count continues, so that the innermost item has the total.
        opened.append(_Open(word, last.parsed, last.parsed))
    elif word in _CLOSERS:
        while len(opened) > 1 and _close(opened) != _CLOSERS[word]:
            pass
    elif acts and word == "END" and last.mark == "CASE":
        _close(opened)
    elif acts and word == "WHEN" and last.mark == "CASE":
        if not last.arms:
            last.operand = last.parsed - last.before
        last.arms += 1
        return False
    elif acts and word == "WITH" and not last.has_with:
        last.has_with = True
    else:
        return False
    return True


def _close(opened: list[_Open]) -> str:
    """Close the innermost bracket or CASE; return its mark."""
    closed = opened.pop()
    # The operand of CASE x WHEN is copied into each arm.
    opened[-1].parsed = closed.parsed + closed.operand * max(0, closed.arms - 1)
    return closed.mark
