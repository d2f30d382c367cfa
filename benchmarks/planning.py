"""Measure each analysis on an open store by stage: planner, optimizer, physical plan, execution.

    python benchmarks/planning.py                           # a synthetic job of 2 ranks
    python benchmarks/planning.py --traces nanogpt_8rank_h100 --analyses roofline top_costs
    python benchmarks/planning.py --repeat 5 --limit 60

On a small store, most of the run time of an analysis is spent on planning. Queries run on one
thread, on a connection whose catalog is loaded. The fastest round of each analysis counts, because
other processes can only slow it down. The numbers of operators and table scans do not depend on the
machine, so they show the effect of a change in the SQL first. Results: a table on stdout, slowest
plan first; all figures in benchmarks/work/planning.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# Run as a script: the repository itself is what is measured.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

import duckdb  # noqa: E402

import hta_sql  # noqa: E402
from benchmarks.jobs import add_job_options, find_jobs  # noqa: E402
from benchmarks.peers import WORK  # noqa: E402
from hta_sql.library import engine_settings, sqltext  # noqa: E402

EVENTS, RANKS = 2_000, 2
"""Size of the synthetic job, so small that execution is short."""

PROFILE = {"enable_profiling": "json", "profiling_mode": "detailed", "threads": 1}
"""Settings that profile all stages; EXPLAIN would omit the planner and single optimizers."""

SCANS = ("READ_PARQUET", "SEQ_SCAN")


@dataclass(frozen=True)
class Stages:
    """Times of one run of an analysis [ms]; only ``cpu`` is unaffected by other processes."""

    cpu: float
    planner: float
    optimizer: float
    physical: float
    execution: float
    operators: int
    scans: int

    @property
    def planning(self) -> float:
        """Time before the execution starts [ms]."""
        return self.planner + self.optimizer + self.physical


def main() -> int:
    """Measure, print, save; return 1 if a plan takes longer than --limit."""
    options = _options()
    sizes = options.size or ([] if options.traces else [EVENTS])
    results, missed = {}, False
    for job in find_jobs(options.traces, sizes, options.ranks):
        store = WORK / "planning" / f"{job.name}.store"
        shutil.rmtree(store, ignore_errors=True)
        with hta_sql.ingest(str(job.traces), store) as opened:
            analyses = _chosen(opened, options.analyses)
            catalog = opened.catalog_path
        found = _measured(catalog, analyses, options.repeat)
        print(f"== {job.name}\n{_table(found)}")
        results[job.name] = {name: asdict(stages) for name, stages in found.items()}
        missed |= any(stages.planning > options.limit for stages in found.values())
    (WORK / "planning.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    return int(missed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_job_options(parser, ranks=RANKS)
    parser.add_argument("--analyses", nargs="+", default=[], metavar="NAME", help="default: all")
    parser.add_argument(
        "--limit", type=float, default=float("inf"), metavar="MS",
        help="fail if a plan takes longer",
    )  # fmt: skip
    return parser.parse_args()


def _chosen(store: hta_sql.TraceStore, names: list[str]) -> list[str]:
    """Return the analyses without required parameters, after materializing their derived tables."""
    analyses = [a for a in store.library.newest() if all(p.default for p in a.parameters)]
    chosen = [a.base_name for a in analyses if not names or a.base_name in names]
    for name in chosen:
        if store.library.reads_derived(store.library.find(name)):
            store.run(name)
    return chosen


def _measured(catalog: str, names: list[str], repeat: int) -> dict[str, Stages]:
    """Return the fastest round of each analysis, with the slowest plan first."""
    found: dict[str, Stages] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        duckdb.connect(catalog, read_only=True) as con,
    ):
        path = Path(folder, "profile.json")
        engine_settings.plan_quicker(con)
        engine_settings.cache_parquet_metadata(con)
        for setting, value in (*PROFILE.items(), ("profiling_output", str(path))):
            engine_settings.put(con, setting, value)
        for name in names:
            query = sqltext.call(name, {})
            con.execute(query).fetchall()  # loads the macros and views that it reads
            rounds = [_profiled(con, query, path) for _ in range(repeat)]
            found[name] = min(rounds, key=lambda stages: stages.cpu)
    return dict(sorted(found.items(), key=lambda item: -item[1].planning))


def _profiled(con: duckdb.DuckDBPyConnection, query: str, path: Path) -> Stages:
    """Run a query, and read the output of the engine's profiler."""
    started = time.process_time()
    con.execute(query).fetchall()
    cpu = 1000 * (time.process_time() - started)
    profile = json.loads(path.read_text(encoding="utf-8"))
    planner = 1000 * profile["planner"]["total_time"]
    optimizer = 1000 * profile["optimizer"]["total_time"]
    physical = 1000 * profile["physical_planner"]["total_time"]
    whole = 1000 * profile["query"]["total_time"]
    operators = list(_operators(profile["operator"]))
    return Stages(
        cpu,
        planner,
        optimizer,
        physical,
        max(0.0, whole - planner - optimizer - physical),
        len(operators),
        sum(operator["name"] in SCANS for operator in operators),
    )


def _operators(plan: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for node in plan for each in (node, *_operators(node.get("children", [])))]


def _table(found: dict[str, Stages]) -> str:
    lines = [
        f"{'[ms]':30}{'CPU':>9}{'planner':>9}{'optimizer':>10}{'physical':>9}{'execution':>10}{'operators':>11}{'scans':>7}"
    ]
    lines += [
        f"{name:30}{s.cpu:9.1f}{s.planner:9.1f}{s.optimizer:10.1f}{s.physical:9.1f}{s.execution:10.1f}{s.operators:11,}{s.scans:7}"
        for name, s in found.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
