"""Compare every public call of HTA's TraceAnalysis on a re-opened job with HTA.

    python benchmarks/calls.py                              # a synthetic job of 130 MB, 8 ranks
    python benchmarks/calls.py --traces nanogpt_8rank_h100 --all-ranks
    python benchmarks/calls.py --size 400000 --ranks 2 --repeat 5

The job is ingested into a store once. In each round, one process opens that store and another loads
the same files into HTA. Both make the same calls with the same arguments. The times of the calls
and of opening or loading are shown separately. Results: a table on stdout, every sample in
benchmarks/work/calls.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

# Run as a script: the repository itself is what is measured.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.jobs import BenchmarkJob, add_job_options, find_jobs  # noqa: E402
from benchmarks.measure import run_worker  # noqa: E402
from benchmarks.peers import WORK, peers_python  # noqa: E402
from benchmarks.rounds import Outcome  # noqa: E402
from benchmarks.workers.calls import CALLS, LOADING  # noqa: E402
from hta_sql.ingestion.listing import list_trace_paths  # noqa: E402

EVENTS, RANKS = 57_600, 8
"""Size of the synthetic job: 130 MB of JSON."""
OPERATOR = "autograd::engine"
OURS = "hta_sql.hta"
"""Package prefix of HTA's modules in hta_sql."""
ENGINES = {"hta_sql": "ours", "HTA": "hta"}
LIMITS = {"calls": 1 / 10, "calls with opening or loading": 1 / 25}
"""Targets: maximum ratio of our time to HTA's."""


def main() -> int:
    """Measure, print and save; return 1 if --targets is given and a target is missed."""
    options = _options()
    sizes = options.size or ([] if options.traces else [EVENTS])
    results, missed = [], False
    for job in find_jobs(options.traces, sizes, options.ranks):
        outcome = _measure(job, options.repeat, all_ranks=options.all_ranks)
        print(_table(outcome))
        sums = _sums(outcome, "wall_s")
        missed |= any(ours > LIMITS[what] * theirs for what, (ours, theirs) in sums.items())
        results.append({"job": job.name, "figures": outcome.figures, "errors": outcome.errors})
    (WORK / "calls.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 1 if options.targets and missed else 0


def _measure(job: BenchmarkJob, repeat: int, *, all_ranks: bool) -> Outcome:
    """Ingest a copy of the job once, then run all calls in both packages, round by round."""
    outcome = Outcome(job)
    home = WORK / "calls" / job.name
    shutil.rmtree(home, ignore_errors=True)
    # A copy, because some calls write files next to the traces.
    traces, store = home / "traces", str(home / "job.store")
    traces.mkdir(parents=True)
    for path in list_trace_paths(str(job.traces)):
        shutil.copy(path, traces)
    asked: dict[str, Any] = {"task": "ingest", "traces": str(traces), "store": f"{store}.first"}
    ingested = run_worker(sys.executable, "ours", asked)
    outcome.facts.update({k: ingested.answer[k] for k in ("events", "files")})
    asked = {"files": ingested.answer["files"], "all_ranks": all_ranks, "operator": OPERATOR}
    ours = {"package": OURS, "store": store}
    # The first process ingests the job; all later processes only open it.
    run_worker(sys.executable, "calls", {**asked, **ours, "only_open": True})
    turns = (("hta", peers_python(), {"package": "hta"}), ("ours", sys.executable, ours))
    for number in range(repeat):
        print(f"{job.name}: round {number + 1} of {repeat}", file=sys.stderr)
        for engine, python, about in turns:
            outcome.add(engine, "process", run_worker(python, "calls", {**asked, **about}))
            for written in traces.glob("*_with_counters*"):
                written.unlink()
    shutil.rmtree(home, ignore_errors=True)
    return outcome


def _sums(outcome: Outcome, unit: str) -> dict[str, tuple[float, float]]:
    """Sum our figures and HTA's over the calls that succeed in both packages."""
    engines = ENGINES.values()
    both = [n for n in CALLS if not any(f"{engine}.{n}" in outcome.errors for engine in engines)]

    def summed(names: list[str]) -> tuple[float, float]:
        ours, theirs = (
            sum(outcome.median(f"{engine}.{name}.{unit}") or 0 for name in names)
            for engine in engines
        )
        return ours, theirs

    return {
        "calls": summed([name for name in both if name not in LOADING]),
        "calls with opening or loading": summed(["open", *both]),
    }


def _table(outcome: Outcome) -> str:
    facts = outcome.facts
    head = (
        f"== {outcome.job.name}: {facts['events']:,} events, {len(facts['files'])} ranks, "
        f"{outcome.job.file_bytes / 1e6:.1f} MB on disk"
    )
    lines = [
        head,
        f"{'wall ms; CPU ms':42}{'hta_sql':>9}{'HTA':>10}{'ratio':>8}{'CPU':>9}{'HTA':>10}{'ratio':>8}",
    ]
    for name in ("import", "open", *CALLS):
        cells = ""
        for unit in ("wall_s", "cpu_s"):
            ours, theirs = (outcome.median(f"{engine}.{name}.{unit}") for engine in ("ours", "hta"))
            cells += _cells(ours, theirs)
        raised = [who for who, key in ENGINES.items() if f"{key}.{name}" in outcome.errors]
        lines.append(f"{name:42}{cells}" + "".join(f"  {who} raises" for who in raised))
    for what, (ours, theirs) in _sums(outcome, "wall_s").items():
        verdict = "PASS" if ours <= LIMITS[what] * theirs else "FAIL"
        cpu = _cells(*_sums(outcome, "cpu_s")[what])
        lines.append(f"{what:42}{_cells(ours, theirs)}{cpu}  {verdict} {LIMITS[what]:.3f}")
    lines += [f"raised: {what}: {error}" for what, error in sorted(outcome.errors.items())]
    return "\n".join(lines)


def _cells(ours: float | None, theirs: float | None) -> str:
    ratio = f"{ours / theirs:8.3f}" if ours is not None and theirs else f"{'-':>8}"
    left, right = ("-" if s is None else f"{s * 1000:,.1f}" for s in (ours, theirs))
    return f"{left:>9}{right:>10}{ratio}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_job_options(parser, ranks=RANKS)
    parser.add_argument(
        "--all-ranks", action="store_true",
        help="ask for all ranks, not for the first one, where a method takes ranks",
    )  # fmt: skip
    parser.add_argument("--targets", action="store_true", help="exit 1 where one is missed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
