"""Compare this tree's ingest, queries and start-up with the previous commit and with peers.

    python benchmarks/paired.py                                  # make bench
    python benchmarks/paired.py --before v0.1.0 --repeat 9
    python benchmarks/paired.py --peers PYTHON --hta CHECKOUT    # HTA from a checkout, such as 0.6.1

Peers are HTA, TraceLens and JSON parsers. The table has the user and system CPU time of whole
processes or of the named task: medians over rounds, and medians of the ratios within a round. Both
trees take turns in every round, each in a separate process. A job in which anything is more than a
tenth slower than before is measured again. If it is still slower, the table marks the row and the
exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Run as a script: the repository itself is what is measured.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.jobs import BenchmarkJob, find_jobs  # noqa: E402
from benchmarks.measure import REPOSITORY, WorkerError, run_worker  # noqa: E402
from benchmarks.peers import WORK, peers_python  # noqa: E402

SLOWER = 1.1
LEAST_S = 0.02
LEAST_ALONE_S = 0.1
"""Minimum time of a row to be compared [s]; shorter times are noise.

Single analyses below the second limit count only in their sum.
"""

JOBS = ("hta_trace_diff_test", "dlrm_8rank_v100", "nanogpt_8rank_h100")
"""Real jobs that are measured if available: one rank, eight small ranks, eight larger ones."""
SYNTHETIC_EVENTS = 50_000
SLOWEST = 12
"""Number of slowest analyses with a separate row."""

COLUMNS = ("before", "now", "hta", "tracelens", "orjson", "simdjson")
STARTS = {
    "import hta_sql": ["-c", "import hta_sql"],
    "hta-sql --version": ["-m", "hta_sql", "--version"],
    "hta-sql run, a table": ["-m", "hta_sql", "run", "STORE", "temporal_breakdown"],
    "hta-sql run, CSV": ["-m", "hta_sql", "run", "STORE", "temporal_breakdown", "--format", "csv"],
}


@dataclass
class Table:
    """Measurements: row ─▶ column ─▶ CPU time of each round [s]."""

    rows: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, row: str, column: str, seconds: float) -> None:
        """Record the time of one round."""
        self.rows.setdefault(row, {}).setdefault(column, []).append(seconds)

    def median(self, row: str, column: str) -> float | None:
        """Return the median of the rounds, or None if nothing was measured."""
        values = self.rows.get(row, {}).get(column)
        return statistics.median(values) if values else None

    def ratio(self, row: str) -> float | None:
        """Return the ratio of this tree's time to the previous commit's: the median over rounds.

        Ratios are computed within rounds, because a machine may be a quarter slower an hour later.
        """
        columns = self.rows.get(row, {})
        rounds = zip(columns.get("now", ()), columns.get("before", ()), strict=False)
        ratios = [now / before for now, before in rounds if before]
        return statistics.median(ratios) if ratios else None

    def slower(self) -> list[str]:
        """List the rows that are more than a tenth slower than before."""
        return [
            row
            for row in self.rows
            if (self.ratio(row) or 0) > SLOWER
            and (self.median(row, "now") or 0) >= (LEAST_ALONE_S if ":   " in row else LEAST_S)
        ]


def main() -> int:
    """Measure, print and save; return 1 if something is slower than in the previous commit."""
    options = _options()
    there = options.traces or [
        n for n in JOBS if (REPOSITORY.parent / "shared/traces" / n).is_dir()
    ]
    jobs = find_jobs(there, [] if there else [SYNTHETIC_EVENTS], 1)
    table = Table()
    with tempfile.TemporaryDirectory(prefix="hta_sql-") as folder:
        trees = {"before": _tree_of(options.before, Path(folder)), "now": REPOSITORY}
        for job in jobs:
            _measure(table, job, trees, Path(folder), options.repeat)
        for job in _doubtful(table, jobs):
            _measure(table, job, trees, Path(folder), options.repeat)
    if not options.without_peers:
        for job in jobs:
            _peers(table, job, options)
    print(_text(table))
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "paired.json").write_text(json.dumps(table.rows, indent=1), encoding="utf-8")
    return 1 if table.slower() else 0


def _doubtful(table: Table, jobs: list[BenchmarkJob]) -> list[BenchmarkJob]:
    """Select the jobs to measure again, and print the reason."""
    slower = table.slower()
    if slower:
        print(f"Once more: {', '.join(slower)}", file=sys.stderr)
    names = {job.name for job in jobs}
    found = {row.partition(":")[0] for row in slower}
    # Rows that belong to no job are measured together with each job.
    return [job for job in jobs if job.name in found] or (jobs[:1] if found - names else [])


def _tree_of(commit: str, folder: Path) -> Path:
    """Unpack the tree of a commit into a folder."""
    tree, packed = folder / "tree", folder / "tree.tar"
    asked = ["git", "-C", str(REPOSITORY), "archive", "--output", str(packed), commit]
    subprocess.run(asked, check=True)
    shutil.unpack_archive(packed, tree)
    return tree


def _measure(
    table: Table, job: BenchmarkJob, trees: dict[str, Path], folder: Path, repeat: int
) -> None:
    """Measure the trees in turn; the first round compiles the bytecode and does not count."""
    for number in range(repeat + 1):
        print(f"{job.name}: round {number} of {repeat}", file=sys.stderr)
        turns = list(trees.items())
        for column, tree in turns if number % 2 else reversed(turns):
            store = folder / column / f"{job.name}.store"
            shutil.rmtree(store, ignore_errors=True)
            for row, seconds in _of_tree(tree, folder / "bytecode", job, store):
                if number:
                    table.add(row, column, seconds)


def _of_tree(
    tree: Path, bytecode: Path, job: BenchmarkJob, store: Path
) -> Iterator[tuple[str, float]]:
    """Measure one tree; yield the name and the CPU time [s] of each row."""
    worker = str(REPOSITORY / "benchmarks" / "workers" / "asking.py")
    for task in ("ingest", "open", "methods", "questions"):
        asked = {"task": task, "traces": str(job.traces), "store": str(store)}
        said, _ = _run(tree, bytecode, [worker, json.dumps(asked)])
        for what, seconds in json.loads(said.splitlines()[-1]).items():
            yield f"{job.name}: {what}", seconds
    for what, arguments in STARTS.items():
        given = [str(store) if one == "STORE" else one for one in arguments]
        _, seconds = _run(tree, bytecode, given)
        yield f"{job.name}: {what}" if "STORE" in arguments else what, seconds


def _run(tree: Path, bytecode: Path, arguments: list[str]) -> tuple[str, float]:
    """Run Python on a source tree; return the output and the CPU time [s]."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(bytecode)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have bytecode, too
    before = os.times()
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    after = os.times()
    seconds = after.children_user + after.children_system
    return done.stdout, seconds - before.children_user - before.children_system


def _peers(table: Table, job: BenchmarkJob, options: argparse.Namespace) -> None:
    """Measure the peers once per round; a peer that is not installed or fails has no figure."""
    python = options.peers or peers_python()
    if options.hta:
        os.environ["HTA_CHECKOUT"] = options.hta
    files = _files(job)
    asked: dict[str, Any] = {"files": {str(n): path for n, path in enumerate(files)}}
    workers: list[tuple[str, str, dict[str, Any], Callable[[dict[str, Any]], dict[str, float]]]] = [
        ("hta", "hta", {**asked, "names": list(HTA_METHODS)}, _of_hta),
        ("tracelens", "tracelens", {"files": files}, _of_load),
        ("orjson", "floor", {"parser": "orjson", "files": files}, _of_load),
        ("simdjson", "floor", {"parser": "simdjson", "files": files}, _of_load),
    ]
    for _ in range(options.repeat):
        for column, worker, request, figures in workers:
            try:
                laps = run_worker(python, worker, request).answer["laps"]
            except WorkerError as error:
                print(f"{column}: {str(error).splitlines()[-1][:120]}", file=sys.stderr)
                continue
            for what, seconds in figures(laps).items():
                table.add(f"{job.name}: {what}", column, seconds)


HTA_METHODS = (
    *("get_temporal_breakdown", "get_gpu_kernel_breakdown", "get_idle_time_breakdown"),
    *("get_comm_comp_overlap", "get_cuda_kernel_launch_stats"),
)


def _of_hta(laps: dict[str, Any]) -> dict[str, float]:
    if "error" in laps["load"]:
        return {}
    found = {"ingest": laps["load"]["cpu_s"]}
    if not any("error" in laps[name] for name in HTA_METHODS):
        found["five methods of HTA"] = sum(laps[name]["cpu_s"] for name in HTA_METHODS)
    return found


def _of_load(laps: dict[str, Any]) -> dict[str, float]:
    return {"ingest": laps["total"]["cpu_s"]}


def _files(job: BenchmarkJob) -> list[str]:
    from hta_sql.ingestion.listing import list_trace_paths  # noqa: PLC0415

    return sorted(map(str, list_trace_paths(str(job.traces))))


def _text(table: Table) -> str:
    """Format the table with the slowest analyses, and all rows that are slower than before."""
    slower = set(table.slower())
    single = {row for row in table.rows if ":   " in row}
    told = sorted(single, key=lambda row: -(table.median(row, "now") or 0))
    shown = {row for name in {row.partition(":")[0] for row in single}
             for row in [one for one in told if one.startswith(f"{name}:")][:SLOWEST]}  # fmt: skip
    lines = [
        f"{'CPU ms':52}" + "".join(f"{name:>11}" for name in (*COLUMNS[:2], "ratio", *COLUMNS[2:]))
    ]
    for row in table.rows:
        if row in single - shown - slower:
            continue
        ratio = table.ratio(row)
        cells = [_ms(table.median(row, column)) for column in COLUMNS]
        cells.insert(2, "-" if ratio is None else f"{ratio:.2f}")
        mark = "  SLOWER" if row in slower else ""
        lines.append(f"{row:52}" + "".join(f"{cell:>11}" for cell in cells) + mark)
    return "\n".join(lines)


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:,.1f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--traces", nargs="+", default=[], metavar="FOLDER_OR_JOB", help="jobs")
    parser.add_argument("--before", default="HEAD~1", metavar="COMMIT", help="what to compare with")
    parser.add_argument("--repeat", type=int, default=5, help="rounds; the median is reported")
    parser.add_argument("--without-peers", action="store_true", help="measure the two trees alone")
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has the others")
    parser.add_argument("--hta", metavar="FOLDER", help="a checkout of HTA for that interpreter")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
