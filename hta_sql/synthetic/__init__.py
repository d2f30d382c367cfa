"""Simulate training jobs and write their Kineto traces.

A small simulator runs a data-parallel job on CPU threads and GPU streams. It writes one trace per
rank in the format of torch's profiler, at any size. The same spec always gives the same bytes.

    job = write_job(Path("traces"), JobSpec(ranks=4, stragglers={2: 3_000_000}))
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from hta_sql.synthetic.device import simulate
from hta_sql.synthetic.kineto_writer import rank_writer
from hta_sql.synthetic.spec import JobSpec

__all__ = ["Job", "JobSpec", "write_job"]


@dataclass(frozen=True)
class Job:
    """A simulated job on disk."""

    spec: JobSpec
    files: list[Path]
    """Trace of each rank, in rank order."""
    events: list[int]
    """Number of events in each file."""


def write_job(folder: Path, spec: JobSpec | None = None) -> Job:
    """Simulate a job and write its traces into `folder`, which is created if missing.

    Only one step of all ranks is in memory at a time.
    """
    spec = JobSpec() if spec is None else spec
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / _file_name(spec, rank) for rank in range(spec.ranks)]
    with ExitStack() as opened:
        writers = [
            opened.enter_context(rank_writer(path, spec, rank)) for rank, path in enumerate(files)
        ]
        for traces in simulate(spec):
            for writer, trace in zip(writers, traces, strict=True):
                writer.write_step(trace)
    return Job(spec, files, [writer.event_count for writer in writers])


def _file_name(spec: JobSpec, rank: int) -> str:
    """Return a file name like that of torch's trace handler: worker name, time, extension."""
    stamp = spec.rank_base_time_ns(rank) + spec.start_ns + spec.shift_ns(rank)
    ending = "pt.trace.json.gz" if spec.gzip else "pt.trace.json"
    return f"rank{rank}.{spec.host_of(rank)}_{spec.pid_of(rank)}.{stamp}.{ending}"
