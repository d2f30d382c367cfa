"""Score verdicts on newly recorded jobs: ``python -m tests.judgement.recorded --torch PYTHON``.

Two gloo ranks train a small model on the CPU under the real profiler (``record_jobs.py``), one of
them with a fault drawn by seed. The truth does not come from the trace: the recorder measures for
how long each rank was busy or held up in each step. What else runs on the machine is part of the
noise and of the truth.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import hta_sql

FAULTS = (
    "none",
    "sleep",
    "sleep once",
    "data loading",
    "communication hook",
    "bucket hook",
    "garbage collection",
    "checkpoint",
    "longer sequences",
    "contention",
)
"""Kinds of faults; every tenth job has none."""

RANKS = 2
LASTING, OFTEN = 0.15, 0.8
"""A rank that is late by this share of the time, and in this share of the steps, must be named."""

INNOCENT = 0.02
"""A rank that is late by less than this share of the time must not be named."""

CERTAIN = ("straggler", "intermittent")
RECORDER = Path(__file__).with_name("record_jobs.py")


@dataclass(frozen=True)
class Planned:
    """A job to record.

    Attributes:
        seconds: Duration of the fault in a step [s]; for garbage, the amount grows with it.
        repeats: For longer sequences, by how many times the batch grows.
        fault_step: The step with a fault that happens once.
    """

    name: str
    seed: int
    fault: str
    late_rank: int
    seconds: float
    steps: int
    fault_step: int
    layers: int
    width: int
    rows: int
    repeats: int
    with_stack: bool


@dataclass(frozen=True)
class Truth:
    """How late a rank was: as a share of the time, and in which share of the steps."""

    share: float
    often: float

    @property
    def must_be_named(self) -> bool:
        """Whether the rank is late for so long that only a certain verdict is right."""
        return self.share >= LASTING and self.often >= OFTEN

    @property
    def is_innocent(self) -> bool:
        """Whether no certain verdict on the rank is right."""
        return self.share < INNOCENT


def planned(jobs: int, seed: int) -> list[Planned]:
    """Draw jobs; each kind of fault in turn."""
    chance = random.Random(seed)
    return [_drawn(at, FAULTS[at % len(FAULTS)], chance) for at in range(jobs)]


def _drawn(at: int, fault: str, chance: random.Random) -> Planned:
    steps = chance.randint(3, 12)
    return Planned(
        name=f"{at:03d}_{fault.replace(' ', '_')}",
        seed=chance.randrange(1 << 30),
        fault=fault,
        late_rank=chance.randrange(RANKS),
        seconds=0.004 * 15 ** chance.random(),
        steps=steps,
        fault_step=chance.randrange(steps),
        layers=chance.randint(2, 8),
        width=chance.choice((384, 512, 768)),
        rows=chance.choice((32, 64, 96)),
        repeats=chance.randint(1, 4),
        with_stack=chance.random() < 0.2,
    )


def record(plan: Sequence[Planned], folder: Path, torch: str) -> None:
    """Record the jobs with an interpreter that has torch."""
    path = folder / "plan.json"
    path.write_text(json.dumps([asdict(job) for job in plan]), encoding="utf-8")
    subprocess.run([torch, str(RECORDER), str(folder), str(path)], check=True, capture_output=True)  # noqa: S603 (own program)


def truth_of(folder: Path) -> dict[int, Truth]:
    """Return how late each rank of a recorded job was."""
    told = [json.loads((folder / f"truth{rank}.txt").read_text()) for rank in range(RANKS)]
    step = statistics.mean(told[0]["step_ns"])
    found = {}
    for rank in range(RANKS):
        pairs = zip(told[rank]["busy_ns"], told[1 - rank]["busy_ns"], strict=True)
        late = [(own - other) / step for own, other in pairs]
        often = sum(one > LASTING / 3 for one in late) / len(late)
        found[rank] = Truth(statistics.mean(late), often)
    return found


def answers_of(plan: Sequence[Planned], folder: Path) -> tuple[dict[str, dict[int, str]], set[str]]:
    """Ingest the jobs as runs of one store.

    Returns:
        The verdict on each rank of each run, and the runs in which advice names a late rank.
    """
    path = folder / "jobs.store"
    for job in plan:
        hta_sql.ingest(folder / job.name, path, run=job.name).close()
    with hta_sql.open(path) as store:
        found: dict[str, dict[int, str]] = {job.name: {} for job in plan}
        for row in store.run("stragglers").arrow().to_pylist():
            found[row["run"]][row["rank"]] = row["verdict"]
        advice = store.run("advice").arrow().to_pylist()
    return found, {row["run"] for row in advice if row["rule"] == "late_rank"}


def judged(
    truth: Mapping[int, Truth], verdicts: Mapping[int, str], *, is_advised: bool
) -> Iterator[str]:
    """Yield what is wrong with the answers for a job: ``missed``, ``innocent`` or ``disagree``."""
    certain = {rank for rank, verdict in verdicts.items() if verdict in CERTAIN}
    if is_advised != bool(certain):
        yield "disagree"
    for rank, told in truth.items():
        is_certain = rank in certain
        if told.must_be_named and not is_certain:
            yield "missed"
        if told.is_innocent and is_certain:
            yield "innocent"


def main() -> None:
    """Record and score jobs, and print a line for each kind of fault and each wrong verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", required=True, help="Python with the CPU build of torch")
    parser.add_argument("--jobs", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    plan = planned(chosen.jobs, chosen.seed)
    with tempfile.TemporaryDirectory() as name:
        record(plan, Path(name), chosen.torch)
        verdicts, advised = answers_of(plan, Path(name))
        counts: dict[str, Counter[str]] = {fault: Counter() for fault in FAULTS}
        for job in plan:
            truth = truth_of(Path(name) / job.name)
            wrong = list(judged(truth, verdicts[job.name], is_advised=job.name in advised))
            counts[job.fault].update(["jobs", *wrong, *([] if wrong else ["right"])])
            counts[job.fault]["must be named"] += any(one.must_be_named for one in truth.values())
            if wrong:
                sys.stdout.write(f"{job.name} {wrong} {truth} said {verdicts[job.name]} {job}\n")
    for fault, count in counts.items():
        sys.stdout.write(f"{fault:20} {dict(count)}\n")


if __name__ == "__main__":
    main()
