"""Dependencies between objects of the library, and their distance."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache

from hta_sql.library.objects import Library, load_library

_CALLED = re.compile(r"\blib\.(\w+)|\b(\w+)")


def texts_of(library: Library) -> dict[str, str]:
    """Return the statement of each object by the name of its file."""
    objects = (*library.tables, *library.macros, *library.derived, *library.analyses)
    return {about.name: about.text for about in objects}


@cache
def parts_in(sql: str, *, derived: bool = True) -> frozenset[str]:
    """Return the names of all objects that a statement reads, directly or indirectly.

    The statements of derived tables are excluded if those exist already.
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
    """Return the users of an object ─▶ their distance; the object itself has 0, and the nearest come first."""
    distances = {name: 0}
    found = {name}
    while found:
        found = {user for user, parts in _direct().items() if parts & found} - distances.keys()
        distances |= dict.fromkeys(sorted(found), max(distances.values()) + 1)
    return distances


def digest_of_parts(parts: Iterable[str]) -> str:
    """Hash the statements of some objects."""
    return digest_of(*(_digests()[part] for part in sorted(parts)))


def digest_of(*texts: str) -> str:
    """Hash some texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


@cache
def _digests() -> dict[str, str]:
    return {name: digest_of(text) for name, text in texts_of(load_library()).items()}


@cache
def _direct() -> dict[str, frozenset[str]]:
    """Return the names in the statement of each object, without its own."""
    library = load_library()
    named = {name: _named_in(text) - {name} for name, text in texts_of(library).items()}
    # A derived table has one name for its rows and one for what computes them.
    computed = {about.base_name: frozenset({about.name}) for about in library.derived}
    return {name: parts | computed.get(name, frozenset()) for name, parts in named.items()}


def _named_in(sql: str) -> frozenset[str]:
    """Return macros by their schema, and all other objects by name."""
    words = _CALLED.findall(re.sub(r"--[^\n]*", "", sql))
    macros, others = _names()
    return frozenset({macro for macro, _ in words} & macros | {word for _, word in words} & others)


@cache
def _names() -> tuple[frozenset[str], frozenset[str]]:
    library = load_library()
    others = (*library.tables, *library.derived, *library.analyses)
    return frozenset(m.name for m in library.macros), frozenset(one.name for one in others)
