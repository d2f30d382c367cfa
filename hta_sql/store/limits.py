"""How much of the machine a store that is open may use."""

from __future__ import annotations

from hta_sql.machine import cpu_count, duckdb_memory_limit
from hta_sql.store.template import Config

QUICKER_PLANS = "SET disabled_optimizers = 'projection_pullup'"
"""Half of planning a question of 25 rules goes into that step, which brings nothing that was measured."""


def engine(threads: int | None, memory_limit: str | None) -> Config:
    """Set the engine up; None: as much as this process may use."""
    return {
        "threads": threads or cpu_count(),
        "memory_limit": memory_limit or duckdb_memory_limit(),
        # For fewer rows than this on one side the engine compares each pair. It takes the rows
        # of nearly every stage for one: a path over 25,000 kernels compared 300 million pairs.
        "asof_loop_join_threshold": 0,
    }
