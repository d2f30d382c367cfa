"""Correct answers for a job, computed by simulating it again without its faults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from tests.judgement.job import Fault, Job, SlowLink
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
    "copies": {"copies"},
}
"""Fault kind ─▶ causes that are correct for it."""


LATE_SHARE = 0.01
"""Minimum delay of a late step as a share of its duration, which is also the analyses' default."""


@dataclass(frozen=True)
class Truth:
    """The correct answers for a job.

    Attributes:
        late: Slow rank ─▶ correct verdicts. Both straggler and intermittent are correct if the
            fault affects about half of the steps.
        causes: Slow rank ─▶ correct causes.
        slow_links: Links whose transfers are slower.
        saved_pct: Scenario ─▶ saving as a share of the capture [%].
        is_decidable: Whether the traces show enough to name all slow ranks.
        least_alone_pct: Cost of the smallest fault in a job without other faults [%]; None if the
            job has only one fault.
        later_pct: Cost of the smallest fault after the first step, in a job without other faults
            [%]; None if the job has no fault.
    """

    late: dict[int, set[str]]
    causes: dict[int, set[str]]
    slow_links: tuple[SlowLink, ...]
    saved_pct: dict[str, float]
    is_decidable: bool = True
    least_alone_pct: float | None = None
    later_pct: float | None = None


def _verdicts(job: Job, fault: Fault) -> set[str]:
    if fault.kind == "host pauses":
        return _verdicts_of_chance(job, fault)
    if fault.steps is None:
        return {"straggler"}
    return {"intermittent"} if 2 * len(fault.steps) < job.steps else {"intermittent", "straggler"}


def _verdicts_of_chance(job: Job, fault: Fault) -> set[str]:
    """Return the correct verdicts for a rank with random delays, given its number of late steps.

    Both verdicts are correct if it depends on a single step whether most steps are late.
    """
    late = late_steps(replace(job, faults=(fault,)))
    if 2 * (late + 1) <= job.steps:
        return {"intermittent"}
    return {"straggler"} if 2 * (late - 1) > job.steps else {"intermittent", "straggler"}


def late_steps(job: Job) -> int:
    """Return the number of captured steps that the faults make at least 1 % longer."""
    ends, usual = (_step_ends(j, simulate(j)) for j in (job, job.healthy()))
    least = LATE_SHARE * (usual[-1] - usual[0]) / job.steps
    delays = [end - healthy for end, healthy in zip(ends, usual, strict=True)]
    return sum(after - before >= least for before, after in pairwise(delays))


def _step_ends(job: Job, machine: Machine) -> list[int]:
    """Return the device end time of each step [ns], starting with the step before the capture."""
    steps = job.steps + job.warm_steps
    return [min(begins(machine))] * (not job.warm_steps) + [
        max(item.end for items in machine.items for item in items[: step * len(items) // steps])
        for step in range(max(1, job.warm_steps), steps + 1)
    ]


def length(job: Job, machine: Machine) -> int:
    """Return the time from the start of the capture to the last end on any device [ns]."""
    present = [r for r in range(job.ranks) if r not in job.missing]
    start = min(begin for r, begin in enumerate(begins(machine)) if r in present)
    return max(item.end for r in present for item in machine.items[r]) - start


def _later(job: Job, machine: Machine) -> int:
    """Return the time from the end of the first step to the end of the capture [ns]."""
    steps = job.steps + job.warm_steps
    firsts = (items[: (1 + job.warm_steps) * len(items) // steps] for items in machine.items)
    return length(job, machine) - (
        max(item.end for items in firsts for item in items) - min(begins(machine))
    )


def truth_of(job: Job, machine: Machine) -> Truth:
    """Compute the answers from simulations without faults, slow links or transfer times."""
    now = length(job, machine)

    def saved(other: Job) -> float:
        return 100 * (now - length(other, simulate(other))) / now

    instant = replace(job, data_ns=0, tensor_ns=0, pipeline_ns=0)
    scenarios = {"no transfer": saved(instant)}
    if job.faults:
        scenarios["no straggler"] = saved(job.healthy())
    # If a fault is overlapped by a larger one, only a job without the others shows its cost.
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
    return Truth(seen, causes, job.links, scenarios, len(seen) == len(late), least, later)
