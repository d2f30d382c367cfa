"""Find the jobs to benchmark: real jobs if available, otherwise synthetic ones."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.peers import WORK
from hta_sql.errors import HtaSqlError
from hta_sql.ingestion.listing import list_trace_paths
from hta_sql.synthetic import JobSpec, write_job
from tests.synthetic.sizing import spec_for_events

REAL_TRACES = Path(__file__).resolve().parent.parent.parent / "shared" / "traces"
REAL_JOBS = (
    "xdit_sd35_mi300x",
    "sam_fast_a100",
    "hta_df_index_resolver",
    "nanogpt_8rank_h100",
    "dlrm_8rank_v100",
)
DEFAULT_EVENTS = 200_000


@dataclass(frozen=True)
class BenchmarkJob:
    """A folder of per-rank traces."""

    name: str
    traces: Path
    file_bytes: int


def add_job_options(parser: argparse.ArgumentParser, *, ranks: int) -> None:
    """Add the options that select the jobs and the number of rounds.

    Args:
        parser: Parser of a benchmark.
        ranks: Default number of ranks of a synthetic job.
    """
    parser.add_argument(
        "--traces", nargs="+", default=[], metavar="FOLDER_OR_JOB",
        help="folders of traces, or names of jobs in ../shared/traces",
    )  # fmt: skip
    parser.add_argument(
        "--size", type=int, action="append", default=[], metavar="EVENTS",
        help="a synthetic job of so many events per rank; may be repeated",
    )  # fmt: skip
    parser.add_argument("--ranks", type=int, default=ranks, help="ranks of a synthetic job")
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the median is reported")


def find_jobs(wanted: list[str], sizes: list[int], ranks: int) -> list[BenchmarkJob]:
    """List the requested jobs and synthetic jobs of the given sizes; default: all available jobs.

    Args:
        wanted: Folders, files, or names of real jobs.
        sizes: Events per rank; each size adds a synthetic job.
        ranks: Number of ranks of synthetic jobs.
    """
    if wanted or sizes:
        jobs = [_real(name) for name in wanted]
        return jobs + [_synthetic(events, ranks) for events in sizes]
    if jobs := [_real(name) for name in REAL_JOBS if (REAL_TRACES / name).is_dir()]:
        return jobs
    return [_synthetic(DEFAULT_EVENTS, ranks)]


def _real(name: str) -> BenchmarkJob:
    given = Path(name)
    path = given if given.exists() else REAL_TRACES / name
    try:
        size = sum(Path(file).stat().st_size for file in list_trace_paths(str(path)))
    except HtaSqlError as error:
        sys.exit(str(error))
    return BenchmarkJob(path.name, path.absolute(), size)


def _synthetic(events: int, ranks: int) -> BenchmarkJob:
    """Write a synthetic job, unless it exists already."""
    name = f"synthetic_{ranks}x{events}"
    folder = WORK / "traces" / name
    complete = folder / "complete"
    if not complete.exists():
        print(f"Writing {name} ...", file=sys.stderr)
        # With Python frames and memory events, as in the large traces that users wait for.
        spec = JobSpec(ranks=ranks, python_stacks=True, memory_events=True)
        write_job(folder, replace(spec_for_events(events, spec)))
        complete.touch()
    return _real(str(folder))
