"""Makes bar labels unique."""

from __future__ import annotations


def distinct(names: list[str]) -> list[str]:
    """Number equal labels, because bars with the same label would be drawn as one."""
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            names[place] = f"{name} #{seen[name]}"
    return names
