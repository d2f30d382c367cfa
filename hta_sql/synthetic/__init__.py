"""Synthetic training jobs: Kineto traces together with what is true of them.

A small simulator runs a data-parallel job on CPU threads and GPU streams and writes one trace
a rank, as torch's profiler would. Because it knows what it ran, it can say exactly how long
the GPU was busy, which rank held up which collective, and why a stream was idle: numbers that
analyses can be checked against, at any size.

    job = write_job(Path("traces"), JobSpec(ranks=4, stragglers={2: 3_000_000}))
    job.truth.ranks[0].default.time.idle_ns
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hta_sql.synthetic.counting import TruthRecorder
from hta_sql.synthetic.device import simulate
from hta_sql.synthetic.files import RankWriter
from hta_sql.synthetic.sizing import spec_for_events
from hta_sql.synthetic.spec import JobSpec
from hta_sql.synthetic.truth import Truth

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Job", "JobSpec", "Truth", "spec_for_events", "write_job"]


@dataclass(frozen=True)
class Job:
    """A job on disk."""

    spec: JobSpec
    files: list[Path]
    """The trace of each rank, in order."""
    events: list[int]
    """Events in each file."""
    truth: Truth | None
    """None where it was not asked for."""


def write_job(folder: Path, spec: JobSpec | None = None, *, truth: bool = True) -> Job:
    """Simulate a job and write its traces into `folder`, which is made where it is missing.

    One step of all ranks is in memory at a time. The truth needs every GPU operation, so ask
    for none when the job is large.
    """
    spec = JobSpec() if spec is None else spec
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / _file_name(spec, rank) for rank in range(spec.ranks)]
    recorder = TruthRecorder(spec) if truth else None
    with ExitStack() as opened:
        writers = [
            opened.enter_context(RankWriter(path, spec, rank)) for rank, path in enumerate(files)
        ]
        for traces in simulate(spec):
            for writer, trace in zip(writers, traces, strict=True):
                writer.write_step(trace)
            if recorder is not None:
                recorder.add_step(traces)
    return Job(
        spec,
        files,
        [writer.events.total() for writer in writers],
        None if recorder is None else recorder.truth([writer.events for writer in writers]),
    )


def _file_name(spec: JobSpec, rank: int) -> str:
    """As torch's trace handler names them: worker name, then time, then the usual ending."""
    stamp = spec.rank_base_time_ns(rank) + spec.start_ns + spec.shift_ns(rank)
    ending = "pt.trace.json.gz" if spec.gzip else "pt.trace.json"
    return f"rank{rank}.{spec.host_of(rank)}_{spec.pid_of(rank)}.{stamp}.{ending}"
