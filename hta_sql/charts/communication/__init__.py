"""Communication figures; importing the package registers them."""

from __future__ import annotations

from hta_sql.charts.communication import (
    groups,
    hangs,
    pipeline,
    stragglers,
    waits,
    what_if,
)

__all__ = ["groups", "hangs", "pipeline", "stragglers", "waits", "what_if"]
