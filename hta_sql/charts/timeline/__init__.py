"""Timeline figures; importing the package registers them."""

from __future__ import annotations

from hta_sql.charts.timeline import cluster, frames, gpu, idle, ranks, steps

__all__ = ["cluster", "frames", "gpu", "idle", "ranks", "steps"]
