"""Measure how the matching of collectives across ranks scales: CPU and memory by rank count.

    python benchmarks/collectives.py                       # 64 and 512 ranks of 2,000 collectives
    python benchmarks/collectives.py --ranks 8 --ranks 64 --collectives 500

The kernels are simulated in memory, without traces: tensor-parallel groups of eight ranks within
data-parallel groups, one rank 10 % late, and captures that start at different times. A fresh
process computes and materializes the derived tables within the memory limit of the engine, as a
store does, and runs `collective_waits` and `stragglers`. The target for each size is at most 1.3
times the CPU per kernel of the first size.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

# Run as a script: the repository itself is what is measured.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.measure import run_worker  # noqa: E402
from tests.jobs.tables import database, fill  # noqa: E402

TP = 8
STAGES = ("matched_collectives", "step_parts", "collective_waits", "stragglers")


def kernels(ranks: int, collectives: int, *, numbered: bool) -> tuple[pa.Table, int]:
    """Simulate a job that repeats three tensor-parallel collectives and one data-parallel one.

    Returns:
        The kernels in the captures, and the end of the job [ns].
    """
    random = np.random.default_rng(0)
    number = np.arange(ranks)
    ready = np.zeros(ranks, np.int64)
    columns: dict[str, list[Any]] = {name: [] for name in ("ts", "dur", "group", "seq")}
    for place in range(collectives):
        work = 300_000 * (1 + random.normal(0, 0.03, ranks))
        work[3] *= 1.1
        came = ready + work.astype(np.int64)
        is_outer = place % 4 == 3
        group = 1000 + number % TP if is_outer else number // TP
        grid = came.reshape(-1, TP).T if is_outer else came.reshape(-1, TP)
        over = grid.max(1, keepdims=True) + (150_000 if is_outer else 40_000)
        over = np.broadcast_to(over, grid.shape)
        end = (over.T if is_outer else over).reshape(ranks) + random.integers(0, 400, ranks)
        seq = place // 4 if is_outer else place - place // 4
        for name, values in (("ts", came), ("dur", end - came), ("group", group)):
            columns[name].append(values)
        columns["seq"].append(np.full(ranks, seq))
        ready = end + 1000
    flat = {name: np.concatenate(parts) for name, parts in columns.items()}
    rank = np.tile(number, collectives)
    table = pa.table(
        {
            "run": pa.array(["job"]).take(pa.array(np.zeros(len(rank), np.int64))),
            "rank": pa.array(rank, pa.int32()),
            "event_id": np.repeat(np.arange(collectives), ranks),
            "ts": flat["ts"],
            "dur": flat["dur"],
            "stream": np.where(flat["group"] < 1000, 20, 24),
            "pg_name": pa.array(flat["group"].astype(str)),
            "pg_ranks": pa.array([_ranks_of(group, ranks) for group in flat["group"]]),
            "group_size": np.where(flat["group"] < 1000, TP, ranks // TP),
            "seq": pa.array(flat["seq"]) if numbered else pa.nulls(len(rank), pa.int64()),
        }
    )
    # Captures start late: each rank lacks its first one to five collectives.
    missing = random.integers(1, 6, ranks)
    return table.filter(pa.array(table["event_id"].to_numpy() >= missing[rank])), int(ready.max())


def _ranks_of(group: int, ranks: int) -> str:
    members = (
        range(group % 1000, ranks, TP) if group >= 1000 else range(group * TP, group * TP + TP)
    )
    head = ", ".join(map(str, members[:3]))
    return f"[{head}, ...]" if len(members) > TP else str(list(members))


def write_database(folder: Path, ranks: int, collectives: int, *, numbered: bool) -> int:
    """Write a catalog of a simulated job, with kernels in Parquet; return the kernel count."""
    table, end = kernels(ranks, collectives, numbered=numbered)
    path = str(folder / "gpu_ops.parquet")
    with database(folder) as con:
        fill(con, {"gpu_ops": table})
        con.execute(
            "COPY (SELECT * REPLACE (0 AS span, false AS is_suspect, 'communication' AS class, "
            "'metadata' AS class_source, 'ncclDevKernel_AllReduce' AS name, 0 AS device, "
            "false AS in_tail, 'allreduce' AS collective, 'Float' AS elem_type, "
            "1000000 AS in_elems, 1000000 AS out_elems) FROM stored.gpu_ops) "
            "TO $path (COMPRESSION zstd)",
            {"path": path},
        )
        con.execute("DROP TABLE stored.gpu_ops")
        con.execute(f"CREATE VIEW stored.gpu_ops AS FROM '{path}'")
        con.execute(
            "INSERT INTO stored.ranks BY NAME SELECT 'job' AS run, i::INTEGER AS rank, "
            "0 AS span, $end AS dur, 5 AS event_count, 'host' || i // 8 AS host_name FROM range($ranks) t(i)",
            {"end": end, "ranks": ranks},
        )
        con.execute(
            "INSERT INTO stored.rank_scope BY NAME SELECT 'job' AS run, i::INTEGER AS rank, "
            "0 AS span, 0 AS offset_ns, false AS drops_last_step FROM range($ranks) t(i)",
            {"ranks": ranks},
        )
    return int(table.num_rows)


def main() -> int:
    """Measure each size and print a line for each stage."""
    options = _options()
    print(f"Memory limit {options.memory_limit}.")
    print(f"{'ranks':>6}{'kernels':>11}  {'stage':<20}{'CPU s':>8}{'us/kernel':>11}{'times':>7}")
    first: dict[str, float] = {}
    for ranks in options.ranks or (64, 512):
        with tempfile.TemporaryDirectory() as folder:
            numbered = options.numbered
            count = write_database(Path(folder), ranks, options.collectives, numbered=numbered)
            asked = {"folder": folder, "memory_limit": options.memory_limit}
            measured = run_worker(sys.executable, "collectives", asked)
        laps = {stage: measured.answer["laps"][stage]["cpu_s"] for stage in STAGES}
        for stage, cpu in (laps | {"all": sum(laps.values())}).items():
            each = 1e6 * cpu / count
            times = each / first.setdefault(stage, each)
            print(f"{ranks:>6}{count:>11,}  {stage:<20}{cpu:>8.2f}{each:>11.2f}{times:>7.2f}")
        print(f"{'':>19}peak {measured.peak_mb:,.0f} MB; late: {measured.answer['late']}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, action="append", help="ranks; may be repeated")
    parser.add_argument("--collectives", type=int, default=2000, help="collectives of a rank")
    parser.add_argument("--numbered", action="store_true", help="kernels have sequence numbers")
    parser.add_argument("--memory-limit", default="1500MB", help="of the engine (default: 1500MB)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
