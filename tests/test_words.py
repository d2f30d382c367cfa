"""Tests that prose avoids words for which the field has established terms.

Prose comprises docstrings, SQL comments, messages and docs.
"""

from __future__ import annotations

import ast
import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hta_sql.library.sql_files import sql_root

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent

AVOIDED = {
    r"tells?|told": "return, show, state, report",
    r"anew": "again, rebuild, recompute",
    r"beside": "next to, together with",
    r"parted": "separate, partitioned",
    r"leftovers?": "orphaned files, garbage",
    r"(?:put|set|left) aside": "quarantine",
    r"(?<!there\s)(?:is|are) none": "is missing, does not exist",
    r"wanted": "requested, expected",
    r"ask|asks|asked|asking": "query, run, request",
    r"kept": "materialized, cached, retained",
    r"nothing hides|what hides": "not overlapped, exposed",
    r"is to be|are to be": "must, can",
    r"see to it": "ensure",
    r"what is gone": "lost events",
    r"speaks? of": "name, describe",
}
"""Regular expression of a word that prose avoids ─▶ what to write instead."""

PATTERN = re.compile(
    "|".join(rf"\b(?:{word})\b" for word in AVOIDED).replace(" ", r"\s+"), re.IGNORECASE
)

EXCEPTIONS = {
    "is kept": "what a redaction does not remove",
    "are kept": "what a redaction does not remove",
    "kept: ": "entry of a parameter or attribute in a docstring",
    "wanted: ": "entry of a parameter or attribute in a docstring",
    "ask: ": "entry of a parameter or attribute in a docstring",
    "memory beside it": "key that tests/test_documented_limits.py looks up in docs/limits.md",
}
"""Phrase that is allowed although it contains an avoided word ─▶ the reason."""

CODE = re.compile(r"```.*?```|~~~.*?~~~|`[^`\n]*`|'[^'\n]*'|\"[^\"\n]*\"", re.DOTALL)


def without_code(text: str) -> str:
    """Replace code and quoted text with spaces, which preserves line numbers."""
    return CODE.sub(lambda code: re.sub(r"[^\n]", " ", code.group()), text)


def docstrings(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the first line number and text of each docstring in a module."""
    for node in ast.walk(ast.parse(file.read_text())):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, node.value.value


def sql_comments(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the line number and text of each comment in an SQL file."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        _, dashes, comment = line.partition("-- ")
        if dashes:
            yield number, comment


def messages(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the row number and text of each message in a CSV file."""
    with file.open(newline="") as rows:
        for number, row in enumerate(csv.DictReader(rows), 2):
            yield number, "\n".join(text or "" for name, text in row.items() if name != "code")


def prose() -> Iterator[tuple[Path, int, str]]:
    """Yield the file, first line number and text of all prose that people read."""
    for folder, pattern, reader in (
        (ROOT / "hta_sql", "**/*.py", docstrings),
        (sql_root(), "**/*.sql", sql_comments),
        (sql_root() / "messages", "*.csv", messages),
    ):
        for file in sorted(folder.glob(pattern)):
            yield from ((file, line, text) for line, text in reader(file))
    for file in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CHANGELOG.md"]:
        yield file, 1, file.read_text()


def odd_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line offset and text of each avoided word."""
    plain = without_code(text)
    for phrase in EXCEPTIONS:
        plain = plain.replace(phrase, " " * len(phrase))
    for found in PATTERN.finditer(plain):
        # Case is ignored, so the pattern also matches "is None", which is about the Python value.
        if "None" not in found.group():
            yield plain.count("\n", 0, found.start()), found.group()


def instead(word: str) -> str:
    """Return the replacement that is proposed for an avoided word."""
    return next(
        better
        for avoided, better in AVOIDED.items()
        if re.fullmatch(avoided, " ".join(word.split()), re.IGNORECASE)
    )


def test_prose_uses_the_terms_of_the_field() -> None:
    """Prose contains no avoided word; a finding names the line and proposes a replacement."""
    findings = [
        f"{file.relative_to(ROOT)}:{first + offset}: {word!r}: write {instead(word)}"
        for file, first, text in prose()
        for offset, word in odd_words(text)
    ]
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Tell which rank is late.", ["Tell"]),
        ("Return the slow rank,\nor None if the reader is none.", ["is none"]),
        ("Rows that were set\naside", ["set\naside"]),
        ("A column `told` and 'asked' values", []),
        ("Materialize the table again.", []),
    ],
)
def test_a_word_of_the_list_is_found_outside_code(text: str, found: list[str]) -> None:
    """An avoided word is found in prose, but not in code or quoted text."""
    assert [word for _, word in odd_words(text)] == found
