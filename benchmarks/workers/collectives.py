"""Matches the collectives of a prepared catalog, keeps them, asks who waits and who is late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.workers.laps import Laps, request


def measure(asked: dict[str, Any]) -> None:
    """Stage by stage, as a store does it."""
    laps = Laps()
    import duckdb  # noqa: PLC0415

    folder = Path(asked["folder"])
    kept = str(folder / "matched.parquet")
    limits = {"memory_limit": asked["memory_limit"], "temp_directory": str(folder / "spilt")}
    limits["preserve_insertion_order"] = "false"
    with duckdb.connect(str(folder / "jobs.duckdb"), config=limits) as con:
        laps.lap("open")
        con.execute(
            "COPY (FROM derived.matched_collectives_v1(NULL)) TO $kept "
            "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)",
            {"kept": kept},
        )
        laps.lap("matched_collectives")
        con.execute(f"CREATE OR REPLACE VIEW derived.matched_collectives AS FROM '{kept}'")
        con.execute("SELECT count(*), sum(wait_ns), max(busbw_gbps) FROM collective_waits_v1()")
        laps.lap("collective_waits")
        late = con.execute(
            "WITH blocks AS (FROM lib.rank_blocks(NULL)) SELECT list(rank) FROM lib.late_ranks(NULL, 'blocks', 1.0) WHERE is_late"
        ).fetchall()[0][0]
        laps.lap("straggler_signals")
    laps.print(late=late)


if __name__ == "__main__":
    measure(request())
