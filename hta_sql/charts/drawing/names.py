"""Labels of bars that stay different."""

from __future__ import annotations


def distinct(names: list[str]) -> list[str]:
    """Tell equal labels apart: two bars of one name would be drawn as one."""
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            names[place] = f"{name} #{seen[name]}"
    return names
