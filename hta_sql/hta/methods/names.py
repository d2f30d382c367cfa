"""Long names made short, as HTA does it."""

from __future__ import annotations

import re

_COPY = re.compile(r"(hip)?(Memcpy|Memset)|dma")
_OPENING = {">": "<", ")": "("}


def shorten_name(name: str) -> str:
    """Leave out template arguments, call arguments and the return type.

    Names of copies and memsets stay as they are: ``Memcpy HtoD (Pinned -> Device)``.
    """
    if _COPY.match(name) or not ("<" in name or "(" in name):
        return name
    kept: list[str] = []
    for letter in name.replace("->", ""):
        if letter not in _OPENING:
            kept.append(letter)
            continue
        while kept and kept.pop() != _OPENING[letter]:
            pass
    return "".join(kept).split(" ")[-1]
