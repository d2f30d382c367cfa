"""Every answer follows when a trace is changed in a known way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hta_sql.synthetic import JobSpec
from hta_sql.synthetic import write_job as write_synthetic
from tests.golden_cases import TRACES
from tests.jobs.spec import MS, PlantedJob
from tests.jobs.traces import write_job as write_planted
from tests.laws.held import ALL, ALONE, broken_by
from tests.laws.jobs import Job, jobs_of, read_trace
from tests.laws.laws import Broken

SHARED = Path(__file__).parents[3] / "shared" / "traces"

ONE_RANK = (
    *("gap_causes", "memory_of_training", "module_with_backward", "graph_replays"),
    *("operator_kinds", "path_stream_waits"),
)
SEVERAL_RANKS = ("late", "links", "experts")
"""Tiny traces: files that end in the number of the rank."""

PLANTED = {
    "late_rank": PlantedJob(ranks=4, steps=6, layers=1, slower_clock={3: 1.3}),
    "loading": PlantedJob(ranks=2, steps=6, layers=1, loading={1: 1 * MS}, metadata="without seq"),
    "pipeline": PlantedJob(ranks=4, steps=4, layers=1, stages=2, micro_batches=2),
}
"""Jobs with a known late rank, slow stage or none."""

SMALL = (
    *("hta_trace_compare_base", "hta_cp_simple_add", "bert_small_h100", "aorta_mi355x"),
    *("megatron_tp2_v100", "hta_triton_example"),
)
"""Small recorded jobs."""


def _job(name: str, files: Sequence[Path]) -> Job:
    traces = [read_trace(file) for file in files]
    assert all(traces), files
    return Job(name, {rank: trace for rank, trace in enumerate(traces) if trace})


def _tiny() -> list[Job]:
    alone = [_job(name, [TRACES / f"{name}.json"]) for name in ONE_RANK]
    several = [_job(name, sorted(TRACES.glob(f"{name}_[0-9].json"))) for name in SEVERAL_RANKS]
    return alone + several


QUICK = tuple(law for law in ALL if law not in (ALONE, "dilated_10"))
"""The other laws repeat all analyses for each job, or say what a larger factor says."""

NUMBERED = tuple(law for law in QUICK if law != "ranks_permuted")
"""Without the law that does not hold yet for jobs with sends, stages and equal ranks.

Their collectives and stages are numbered in the order of ranks, and of equal ranks the lowest is named.
"""


def _said(found: Sequence[Broken]) -> str:
    return "\n".join(str(one) for one in found if not one.exemption)


def test_answers_for_tiny_traces_follow(tmp_path: Path) -> None:
    """All answers for tiny hand-written traces follow."""
    assert _said(broken_by(_tiny(), tmp_path / "laws", NUMBERED)) == ""


def test_answers_for_planted_jobs_follow(tmp_path: Path) -> None:
    """All answers for jobs of several ranks with a known cause follow."""
    jobs = []
    for name, planted in PLANTED.items():
        paths, _ = write_planted(tmp_path / name, planted)
        jobs.append(_job(name, [Path(path) for _, path in sorted(paths.items())]))
    assert _said(broken_by(jobs, tmp_path / "laws", NUMBERED)) == ""


def test_answers_for_a_simulated_job_follow(tmp_path: Path) -> None:
    """All answers for a simulated job with memory events, stacks and synchronizations follow."""
    spec = JobSpec(
        ranks=2,
        steps=5,
        layers=2,
        ops_per_layer=3,
        memory_events=True,
        python_stacks=True,
        sync_events=True,
        gzip=False,
    )
    files = write_synthetic(tmp_path / "job", spec).files
    assert _said(broken_by([_job("simulated", files)], tmp_path / "laws", QUICK)) == ""


@pytest.mark.parametrize("name", SMALL)
def test_answers_for_recorded_jobs_follow(tmp_path: Path, name: str) -> None:
    """All answers for small recorded jobs follow."""
    if not SHARED.exists():
        pytest.skip("the shared traces are absent")
    assert _said(broken_by(jobs_of(SHARED / name), tmp_path / "laws", QUICK)) == ""


def test_a_run_is_answered_as_if_it_were_alone(tmp_path: Path) -> None:
    """Answers for a run do not depend on the other runs of a store."""
    jobs = [job for job in _tiny() if job.name in ("module_with_backward", "links")]
    assert _said(broken_by(jobs, tmp_path / "laws", [ALONE])) == ""
