"""Rules for public names (``public_names.csv``), and the facts that analyses read from names."""

from __future__ import annotations

import csv
import fnmatch
import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from hta_sql.library.sql_files import sql_root
from hta_sql.library.vendors import alternatives

_PIECES = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NUMBER = re.compile(r"\d+(x\d+)*[A-Za-z]{0,2}")
_VENDOR_FACT = re.compile(r"<vendors\.(\w+)>")
"""Placeholder in a pattern that stands for the values of a fact in vendors.csv."""

Meaning = Callable[[str], object]


@functools.cache
def patterns(kind: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of public names of a kind."""
    return tuple(re.compile(text, re.DOTALL) for text in _rows().get(kind, ()))


@functools.cache
def listed(kind: str) -> frozenset[str]:
    """Return the public names of a kind, such as classes, packages or words."""
    return frozenset(word for text in _rows().get(f"list_{kind}", ()) for word in text.split())


def all_words(text: str) -> bool:
    """Return whether a string consists of public words and numbers only."""
    return text.isascii() and all(map(_is_word, re.findall(r"[^\W_]+", text)))


@functools.cache
def _is_word(token: str) -> bool:
    words = listed("word")
    if len(token) == 1 or token.lower() in words or _NUMBER.fullmatch(token):
        return True
    pieces = _PIECES.findall(token)
    return all(p.isdigit() or len(p) == 1 or p.lower() in words for p in pieces)


def meaning_of(kind: str, name: str) -> tuple[object, ...]:
    """Return the information that analyses read from a name."""
    return tuple(means(name) for means in _meanings(kind))


@functools.cache
def _meanings(kind: str) -> tuple[Meaning, ...]:
    found = [_found(re.compile(text)) for text in _rows().get(f"meaning_{kind}", ())]
    if kind == "operator":
        rules = _table("tables/operation_categories.csv", side="operator")
        found.append(_first((r["pattern"], r["category"]) for r in rules))
    elif kind == "kernel":
        rules = _table("tables/operation_categories.csv", side="kernel")
        found.append(_first((f"(?is:.*({r['pattern']}).*)", r["category"]) for r in rules))
        classes = _table("ingest/kernel_classes.csv")
        found.append(
            _first((f"(?is:.*({r['regex']}).*)", (r["class"], r["collective"])) for r in classes)
        )
        cores = _table("tables/tensor_core_kernels.csv")
        globs = ((fnmatch.translate(r["pattern"]), r["uses_tensor_cores"]) for r in cores)
        of_lower = _first(globs)
        found.append(lambda name: of_lower(name.lower()))
    return tuple(found)


def _found(pattern: re.Pattern[str]) -> Meaning:
    return lambda name: pattern.search(name) is not None


def _first(rules: Iterable[tuple[str, object]]) -> Meaning:
    compiled = [(re.compile(pattern), value) for pattern, value in rules]
    return lambda name: next((value for rule, value in compiled if rule.fullmatch(name)), None)


def _table(name: str, **wanted: str) -> list[dict[str, str]]:
    """Return the rows of a CSV of the SQL library, sorted by priority."""
    with (sql_root() / name).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if all(row[k] == v for k, v in wanted.items())]
    return sorted(rows, key=lambda row: int(row["priority"]))


def _alternatives(fact: re.Match[str]) -> str:
    # A star may match a private word.
    return alternatives(fact.group(1), with_stars=False)


@functools.cache
def _rows() -> dict[str, list[str]]:
    path = Path(__file__).with_name("public_names.csv")
    rows: dict[str, list[str]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        for row in csv.reader(lines):
            # The lists contain no words with commas, so they need no quotes.
            rows[row[0]].append(_VENDOR_FACT.sub(_alternatives, ",".join(row[1:])))
    return dict(rows)
