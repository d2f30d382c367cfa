"""Splits C++ names into tokens, each classified as public or private."""

from __future__ import annotations

import itertools
import re

from hta_sql.exports.redaction.public import all_words, listed

_TOKENS = re.compile(r"::|\w+|.", re.DOTALL)
_ODD = re.compile(r"[^\x20-\x7e]")
_PREFIXED = re.compile(r"\d{1,6}", re.ASCII)
_MANGLED = re.compile(r"_Z(N[KVrRO]*)?(L?\d|S[tabsiod])", re.ASCII)
_TYPES = re.compile(r"[a-z]+")
_MOST_TYPES = 3
"""Maximum number of distinct one-letter type codes in sequence.

``viiii`` has two, ``vlPf`` has more.
"""
_CLOSES = {">": "<", ")": "(", "}": "{"}


def kernel_tokens(name: str) -> list[tuple[str, bool]] | None:
    """Split the name of a kernel into tokens: (text, whether it is public).

    Everything in a library's namespace is public. If a library's template has a user's type as an
    argument, only the type is hashed: ``at::native::foo<id_0123456789ab>``. Other identifiers are
    public if all their words are public.

    Returns:
        The tokens; None if the whole name must be hashed.
    """
    if _ODD.search(name):
        return None
    if name.startswith("_Z"):
        return [(name, True)] if _is_public_mangled(name) else None
    tokens = _TOKENS.findall(name)
    found: list[tuple[str, bool]] = []
    opened: list[bool] = []
    of_library, is_linked = False, False
    for piece, following in zip(tokens, [*tokens[1:], ""], strict=True):
        if piece == "::":
            is_linked = True
            found.append((piece, True))
            continue
        if not re.match(r"\w", piece):
            if piece in "<({":
                opened.append(of_library)
            elif piece in _CLOSES:
                of_library = opened.pop() if opened else False
            found.append((piece, True))
            continue
        is_linked, was_linked = False, is_linked
        if piece == "const":
            found.append((piece, True))
            continue
        if not was_linked:
            of_library = following == "::" and piece in listed("namespace")
        found.append((piece, of_library or all_words(piece)))
    return found


def _is_public_mangled(name: str) -> bool:
    """Return whether a mangled name contains only public identifiers.

    An identifier is public if it belongs to a library or consists of public words.
    """
    if not _MANGLED.match(name):
        return False
    position, end_of_last, of_library, between = 2, -1, False, ""
    while found := _PREFIXED.search(name, position):
        end = found.end() + int(found.group())
        identifier = name[found.end() : end]
        if not re.fullmatch(r"[A-Za-z_]\w*", identifier):
            between += name[position : found.end()]
            position = found.end()
            continue
        between += f"{name[position : found.start()]} "
        if found.start() != end_of_last:
            of_library = identifier in listed("namespace")
        if not of_library and not all_words(identifier):
            return False
        position = end_of_last = end
    codes = _TYPES.findall(between + name[position:])
    return end_of_last > 0 and all(len(_squeezed(run)) <= _MOST_TYPES for run in codes)


def _squeezed(run: str) -> str:
    return "".join(letter for letter, _ in itertools.groupby(run))
