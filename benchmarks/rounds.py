"""Measure every engine once per round on a job; the results are medians over rounds.

The engines take turns within a round, so that a machine that becomes slower or busier affects all
of them.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from dataclasses import dataclass, field
from typing import Any

from benchmarks.jobs import BenchmarkJob
from benchmarks.measure import Measured, WorkerError, run_worker
from benchmarks.peers import WORK

ANALYSES: dict[str, tuple[str, ...]] = {
    "get_temporal_breakdown": ("temporal_breakdown",),
    "get_gpu_kernel_breakdown": ("gpu_kernel_types", "gpu_kernels_by_name"),
    "get_idle_time_breakdown": ("idle_time_breakdown",),
    "get_comm_comp_overlap": ("comm_comp_overlap",),
    "get_cuda_kernel_launch_stats": ("cuda_kernel_launch_stats",),
}
"""HTA's method ─▶ the analyses that together return the same result."""
OUR_ANALYSES = [name for names in ANALYSES.values() for name in names]


@dataclass
class Outcome:
    """Measurements on one job.

    Attributes:
        figures: "engine.what.unit" ─▶ one value per round, for example
            "ours.ingest.cpu_s" (imports excluded) or "hta.process.peak_mb" (the
            whole process tree from start to end).
        errors: "engine.what" ─▶ error that it raised.
        facts: Number of events, bytes of JSON, number of ranks.
    """

    job: BenchmarkJob
    figures: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def median(self, figure: str) -> float | None:
        """Return the median over the rounds, or None if nothing was measured."""
        values = self.figures.get(figure)
        return statistics.median(values) if values else None

    def ratio(self, figure: str, other: str) -> float | None:
        """Return the ratio of two figures of the same round, as the median over all rounds."""
        pairs = zip(self.figures.get(figure, ()), self.figures.get(other, ()), strict=False)
        values = [a / b for a, b in pairs if b]
        return statistics.median(values) if values else None

    def add(self, engine: str, process: str, measured: Measured) -> None:
        """Record the figures of one process: the total, and each lap."""
        whole = {
            "wall_s": measured.wall_s,
            "cpu_s": measured.cpu_s,
            "peak_mb": measured.peak_mb,
        }
        for unit, value in whole.items():
            self.figures.setdefault(f"{engine}.{process}.{unit}", []).append(value)
        for name, lap in measured.answer["laps"].items():
            if "error" in lap:
                self.errors[f"{engine}.{name}"] = lap["error"]
                continue
            for unit in ("wall_s", "cpu_s"):
                self.figures.setdefault(f"{engine}.{name}.{unit}", []).append(lap[unit])


def measure_job(job: BenchmarkJob, peers: str, repeat: int, *, with_hta: bool) -> Outcome:
    """Measure every engine on a job, round by round."""
    outcome = Outcome(job)
    for number in range(repeat):
        print(f"{job.name}: round {number + 1} of {repeat}", file=sys.stderr)
        files = _our_turn(outcome)
        for parser in ("orjson", "simdjson"):
            asked = {"parser": parser, "files": list(files.values())}
            if measured := _attempt(outcome, peers, parser, "floor", asked):
                outcome.add(parser, "process", measured)
                outcome.facts["json_bytes"] = measured.answer["json_bytes"]
        if not with_hta:
            continue
        hta_asked = {"files": files, "names": list(ANALYSES)}
        if measured := _attempt(outcome, peers, "hta", "hta", hta_asked):
            outcome.add("hta", "process", measured)
    return outcome


def _our_turn(outcome: Outcome) -> dict[str, str]:
    """Ingest into a new store, re-open it and run the analyses; return rank ─▶ file."""
    store = WORK / "stores" / f"{outcome.job.name}.store"
    shutil.rmtree(store, ignore_errors=True)
    asked = {"traces": str(outcome.job.traces), "store": str(store), "names": OUR_ANALYSES}
    answer: dict[str, Any] = {}
    for task in ("ingest", "reopen", "analyses"):
        measured = run_worker(sys.executable, "ours", {"task": task, **asked})
        # All three tasks have a lap "import": distinguish them by task.
        laps = measured.answer["laps"]
        if "import" in laps:
            laps[f"{task} import"] = laps.pop("import")
        outcome.add("ours", f"{task} process", measured)
        answer.update(measured.answer)
    outcome.facts["events"] = answer["events"]
    outcome.facts["ranks"] = len(answer["files"])
    files: dict[str, str] = answer["files"]
    return files


def _attempt(
    outcome: Outcome, python: str, engine: str, worker: str, asked: dict[str, Any]
) -> Measured | None:
    """Run another engine; a failure is recorded as its result."""
    try:
        return run_worker(python, worker, asked)
    except WorkerError as error:
        outcome.errors[engine] = str(error).splitlines()[-1][:200]
        return None
