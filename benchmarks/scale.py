"""Measure how ingest scales: memory, CPU and wall time by file size, cores and number of ranks.

    python benchmarks/scale.py                                   # 0.1, 0.5 and 1 GB in 600 MiB
    python benchmarks/scale.py --gb 4 --memory-limit 900MiB --cores 1 --cores 2
    python benchmarks/scale.py --ranks 512 --events 100000

The traces are synthetic and cached in benchmarks/work/traces. Every ingest runs in a fresh process
and into a new store; peak memory is that of the whole process tree.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

# Run as a script: the repository itself is what is measured.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.measure import Measured, run_worker  # noqa: E402
from benchmarks.peers import WORK  # noqa: E402
from hta_sql.machine import cpu_count  # noqa: E402
from hta_sql.synthetic import JobSpec, write_job  # noqa: E402
from tests.synthetic.sizing import spec_for_events  # noqa: E402

EVENT_BYTES = 282
"""Mean size of an event's JSON in a synthetic trace with Python frames and memory events [bytes]."""
DEFAULT_GB = (0.1, 0.5, 1.0)
HEAD = f"{'job':>16}{'cores':>7}{'MB':>9}{'events':>13}{'wall s':>9}{'CPU s':>9}"


@dataclass(frozen=True)
class Trial:
    """A job to ingest, and the number of cores."""

    ranks: int
    events: int
    cores: int

    @property
    def name(self) -> str:
        """Name of the folder with the job's traces."""
        return f"scale_{self.ranks}x{self.events}"


def main() -> int:
    """Write missing traces, measure, and print a line for each trial."""
    options = _options()
    cores = options.cores or [cpu_count()]
    if options.ranks:
        trials = [Trial(options.ranks, options.events, count) for count in cores]
    else:
        sizes = [round(gb * 1e9 / EVENT_BYTES) for gb in options.gb or DEFAULT_GB]
        trials = [Trial(1, events, count) for events in sizes for count in cores]
    print(f"Memory limit {options.memory_limit}.")
    print(HEAD + f"{'CPU ms/MB':>11}{'peak MB':>9}{'answer s':>10}")
    for trial in trials:
        traces = _traces(trial)
        megabytes = sum(file.stat().st_size for file in traces.glob("*.json")) / 1e6
        print(_line(trial, megabytes, _measure(trial, traces, options.memory_limit)), flush=True)
    return 0


def _traces(trial: Trial) -> Path:
    """Write the traces of a trial, unless they exist already."""
    folder = WORK / "traces" / trial.name
    complete = folder / "complete"
    if not complete.exists():
        print(f"Writing {trial.name} ...", file=sys.stderr)
        base = JobSpec(ranks=trial.ranks, python_stacks=True, memory_events=True)
        spec = replace(spec_for_events(trial.events, base), gzip=False)
        write_job(folder, spec)
        complete.touch()
    return folder


def _measure(trial: Trial, traces: Path, memory_limit: str) -> Measured:
    """Ingest into a new store on the trial's number of cores, and run one query."""
    store = WORK / "stores" / f"{trial.name}.store"
    shutil.rmtree(store, ignore_errors=True)
    asked = {
        "task": "scale",
        "traces": str(traces),
        "store": str(store),
        "memory_limit": memory_limit,
    }
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(ours)[: trial.cores])
    try:
        return run_worker(sys.executable, "ours", asked)
    finally:
        os.sched_setaffinity(0, ours)
        shutil.rmtree(store, ignore_errors=True)


def _line(trial: Trial, megabytes: float, measured: Measured) -> str:
    ingest, answer = (measured.answer["laps"][lap] for lap in ("ingest", "first answer"))
    return (
        f"{trial.name.removeprefix('scale_'):>16}{trial.cores:>7}{megabytes:>9,.0f}"
        f"{measured.answer['events']:>13,}{ingest['wall_s']:>9.2f}{ingest['cpu_s']:>9.2f}"
        f"{1000 * ingest['cpu_s'] / megabytes:>11.1f}{measured.peak_mb:>9,.0f}"
        f"{answer['wall_s']:>10.2f}"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--gb", type=float, action="append", metavar="SIZE",
        help="size of a single file [GB]; may be repeated",
    )  # fmt: skip
    parser.add_argument("--ranks", type=int, help="measure a job of so many ranks instead")
    parser.add_argument("--events", type=int, default=100_000, help="events of each rank")
    parser.add_argument(
        "--cores", type=int, action="append", help="cores to use; may be repeated (default: all)"
    )
    parser.add_argument(
        "--memory-limit", default="600MiB", help="as `hta-sql ingest` takes it (default: 600MiB)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
