"""Says how much of the traces of a run could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def lost_text(health: Sequence[dict[str, Any]]) -> str:
    """Return how much of the traces of a run could not be read, from rows of ``rank_health``."""
    damaged = [row for row in health if row["lost_count"]]
    if not damaged:
        return "none lost"
    if any(row["lost_pct"] is None for row in damaged):
        return "more lost: a trace is cut off"
    events = sum(row["lost_event_count"] for row in damaged)
    return f"about {events:,} lost ({max(row['lost_pct'] for row in damaged):.1f} % of a trace)"
