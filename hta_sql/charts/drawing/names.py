"""Makes bar labels unique."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable


def numbered(labels: Iterable[str]) -> list[str]:
    """Number repeated labels, because bars with the same label would be drawn as one."""
    counts: defaultdict[str, int] = defaultdict(lambda: 1)
    found: dict[str, None] = {}
    for label in labels:
        unique = label
        while unique in found:
            counts[label] += 1
            unique = f"{label} #{counts[label]}"
        found[unique] = None
    return list(found)
