"""The truth about a job, from running it again without what was planted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.judgement.job import Fault, Job
from tests.judgement.kineto import begins
from tests.judgement.machine import Machine
from tests.judgement.programs import simulate

CAUSES = {
    "slower clocks": {"slower compute"},
    "slower kernel": {"slower compute"},
    "throttling": {"throttling", "slower compute"},
    "more kernels": {"more compute"},
    "hot expert": {"more compute"},
    "host-bound": {"host-bound"},
    "host pauses": {"host-bound"},
    "data loading": {"data loading"},
    "checkpoint": {"checkpoint", "host-bound"},
}
"""Causes that name a fault rightly."""


@dataclass(frozen=True)
class Truth:
    """What is right to say about a job.

    Attributes:
        late: Rank ─▶ verdicts that are right: straggler, intermittent, or both for what lasts for half of the steps.
        causes: Rank ─▶ causes that name its fault rightly.
        slow_links: Factor of slow links is above 1, so that transfers of some groups are slower.
        saved_pct: Scenario ─▶ share of the capture that it saves [%].
        is_decidable: The traces hold enough to name all culprits.
        least_alone_pct: Cost of the smallest of several faults if the job has no other [%]; None for one fault.
        later_pct: Cost of the smallest fault after the first step, if the job has no other [%]; None without a fault.
    """

    late: dict[int, set[str]]
    causes: dict[int, set[str]]
    slow_links: bool
    saved_pct: dict[str, float]
    is_decidable: bool = True
    least_alone_pct: float | None = None
    later_pct: float | None = None


def _verdicts(job: Job, fault: Fault) -> set[str]:
    if fault.steps is None:
        return {"straggler"}
    return {"intermittent"} if 2 * len(fault.steps) < job.steps else {"intermittent", "straggler"}


def length(job: Job, machine: Machine) -> int:
    """Return the time from the start of the capture to the last end on any device [ns]."""
    present = [r for r in range(job.ranks) if r not in job.missing]
    start = min(begin for r, begin in enumerate(begins(machine)) if r in present)
    return max(item.end for r in present for item in machine.items[r]) - start


def _later(job: Job, machine: Machine) -> int:
    """Return the time from the end of what the first step launches to the last end on any device [ns]."""
    steps = job.steps + job.warm_steps
    firsts = (items[: (1 + job.warm_steps) * len(items) // steps] for items in machine.items)
    return length(job, machine) - (
        max(item.end for items in firsts for item in items) - min(begins(machine))
    )


def truth_of(job: Job, machine: Machine) -> Truth:
    """Run the job without its faults, without its slow links, and with transfers that take no time."""
    now = length(job, machine)

    def saved(other: Job) -> float:
        return 100 * (now - length(other, simulate(other))) / now

    instant = replace(job, data_ns=0, tensor_ns=0, pipeline_ns=0)
    scenarios = {"no transfer": saved(instant)}
    if job.faults:
        scenarios["no straggler"] = saved(job.healthy())
    # A fault that another one covers costs nothing by itself.
    healthy = length(job.healthy(), simulate(job.healthy())) if len(job.faults) > 1 else 0
    alone = [replace(job, faults=(fault,)) for fault in job.faults]
    least = (
        min((100 * (length(j, simulate(j)) / healthy - 1) for j in alone), default=0.0)
        if healthy
        else None
    )
    usual = _later(job, simulate(job.healthy()))
    later = min((100 * (1 - usual / _later(j, simulate(j))) for j in alone), default=None)
    if job.links:
        scenarios["link at peers' speed"] = saved(job.at_peer_speed())
    late = {rank: _verdicts(job, fault) for fault in job.faults for rank in fault.ranks}
    causes = {rank: CAUSES[fault.kind] for fault in job.faults for rank in fault.ranks}
    seen = {rank: verdicts for rank, verdicts in late.items() if rank not in job.missing}
    return Truth(seen, causes, bool(job.links), scenarios, len(seen) == len(late), least, later)
