"""Choose the size parameters of a simulated job for a given number of events."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hta_sql.synthetic.device import simulate
from hta_sql.synthetic.kineto_writer import rank_writer
from hta_sql.synthetic.spec import JobSpec
from hta_sql.synthetic.workload import OPERATORS

MAX_OPS_PER_LAYER = 256
"""Bound on the size of a step, and so on the memory of a writer. Longer traces get more steps."""


def spec_for_events(events_per_rank: int, base: JobSpec | None = None) -> JobSpec:
    """Return `base` with operators and steps that give about `events_per_rank` events.

    The function varies `ops_per_layer`. It increases `steps` if a step would be too large, and
    decreases `steps` if even the smallest steps are too many. Above 10,000 events, the result is
    within 2 % of the request.
    """
    if events_per_rank < 1:
        raise ValueError("events_per_rank must be at least 1")
    base = JobSpec() if base is None else base
    cycle = len(OPERATORS)
    small, large = (_events_per_step(replace(base, ops_per_layer=cycle * n)) for n in (1, 2))
    per_op = (large - small) / cycle
    fixed = small - per_op * cycle
    most = fixed + per_op * MAX_OPS_PER_LAYER
    least = fixed + per_op
    steps = base.steps
    if events_per_rank > most * steps:
        steps = -int(-events_per_rank // most)
    elif events_per_rank < least * steps:
        steps = max(1, int(events_per_rank // least))
    ops = round((events_per_rank / steps - fixed) / per_op)
    return replace(base, steps=steps, ops_per_layer=min(max(ops, 1), MAX_OPS_PER_LAYER))


def _events_per_step(spec: JobSpec) -> int:
    """Return the number of events per step on the first rank, by writing one step."""
    spec = replace(
        spec, ranks=min(spec.ranks, 2), steps=1, early_kernels=0,
        stragglers={}, slow_kernels={}, clock_offsets_ns={}, base_shifts_ns={},
    )  # fmt: skip
    with TemporaryDirectory() as folder, rank_writer(Path(folder, "step.json"), spec, 0) as writer:
        for traces in simulate(spec):
            writer.write_step(traces[0])
        return writer.event_count
