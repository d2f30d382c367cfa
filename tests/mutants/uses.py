"""Dependencies between objects of the library, with their distances."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache

from hta_sql.library.objects import Library, load_library

_CALLED = re.compile(r"\blib\.(\w+)|\b(\w+)")


def texts_of(library: Library) -> dict[str, str]:
    """Return the statement of each library object by its file name."""
    objects = (*library.tables, *library.macros, *library.derived, *library.analyses)
    return {about.name: about.text for about in objects}


@cache
def parts_in(sql: str, *, derived: bool = True) -> frozenset[str]:
    """Return the names of all objects that a statement reads, directly or indirectly.

    Without ``derived``, the statements that compute derived tables are excluded.
    """
    computing = frozenset() if derived else frozenset(one.name for one in load_library().derived)
    found, new = set[str](), set(_named_in(sql))
    while new:
        found |= new
        new = {part for name in new for part in _direct()[name]} - found - computing
    return frozenset(found)


@cache
def parts_of(name: str) -> frozenset[str]:
    """Return the names of all objects that an object depends on, itself included."""
    found = {name}
    for part in _direct()[name] - {name}:
        found |= parts_of(part)
    return frozenset(found)


@cache
def users_of(name: str) -> dict[str, int]:
    """Return the users of an object with their distances, nearest first.

    The object itself has distance 0.
    """
    distances = {name: 0}
    found = {name}
    while found:
        found = {user for user, parts in _direct().items() if parts & found} - distances.keys()
        distances |= dict.fromkeys(sorted(found), max(distances.values()) + 1)
    return distances


def digest_of_parts(parts: Iterable[str]) -> str:
    """Hash the statements of library objects."""
    return digest_of(*(_digests()[part] for part in sorted(parts)))


def digest_of(*texts: str) -> str:
    """Hash strings."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


@cache
def _digests() -> dict[str, str]:
    return {name: digest_of(text) for name, text in texts_of(load_library()).items()}


@cache
def _direct() -> dict[str, frozenset[str]]:
    """Return the names of other objects that the statement of each object mentions."""
    library = load_library()
    named = {name: _named_in(text) - {name} for name, text in texts_of(library).items()}
    # A derived table has one name for its rows and one for the statement that computes them.
    computed = {about.base_name: frozenset({about.name}) for about in library.derived}
    return {name: parts | computed.get(name, frozenset()) for name, parts in named.items()}


def _named_in(sql: str) -> frozenset[str]:
    """Return the objects that a statement mentions: macros with their schema, others by name."""
    words = _CALLED.findall(re.sub(r"--[^\n]*", "", sql))
    macros, others = _names()
    return frozenset({macro for macro, _ in words} & macros | {word for _, word in words} & others)


@cache
def _names() -> tuple[frozenset[str], frozenset[str]]:
    library = load_library()
    others = (*library.tables, *library.derived, *library.analyses)
    return frozenset(m.name for m in library.macros), frozenset(one.name for one in others)
