"""Match and materialize a prepared catalog's collectives, and run analyses of waits on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.workers.laps import Laps, request


def measure(asked: dict[str, Any]) -> None:
    """Run and measure the same stages that a store runs."""
    laps = Laps()
    import duckdb  # noqa: PLC0415

    folder = Path(asked["folder"])
    limits = {"memory_limit": asked["memory_limit"], "temp_directory": str(folder / "spilt")}
    limits["preserve_insertion_order"] = "false"
    with duckdb.connect(str(folder / "jobs.duckdb"), config=limits) as con:
        laps.lap("open")
        for table in ("matched_collectives", "step_parts"):
            kept = str(folder / f"{table}.parquet")
            con.execute(
                f"COPY (FROM derived.{table}_v1(NULL)) TO $kept "
                "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)",
                {"kept": kept},
            )
            con.execute(f"CREATE OR REPLACE VIEW derived.{table} AS FROM '{kept}'")
            laps.lap(table)
        con.execute("SELECT count(*), sum(wait_ns), max(busbw_gbps) FROM collective_waits_v1()")
        laps.lap("collective_waits")
        late = con.execute("SELECT list(rank) FROM stragglers_v1() WHERE is_straggler").fetchall()[
            0
        ][0]
        laps.lap("stragglers")
    laps.print(late=late)


if __name__ == "__main__":
    measure(request())
