"""Jobs with known answers to the golden questions, ingested as runs of one store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hta_sql.synthetic import JobSpec, write_job
from tests.judgement import kineto
from tests.judgement.job import Job, SlowLink
from tests.judgement.programs import simulate
from tests.questions.job import trace
from tests.safety.test_artifacts import write_snapshots
from tests.serving_jobs import continuous_batching
from tests.serving_jobs import trace as engine
from tests.shared_stores import ingest_only

TRACES = Path(__file__).parents[1] / "traces"
PUBLIC = Path(__file__).parents[3] / "shared" / "traces"

MADE: Mapping[str, JobSpec] = {
    "healthy": JobSpec(ranks=4, steps=4),
    "other_seed": JobSpec(ranks=4, steps=4, seed=1),
    "loader": JobSpec(ranks=4, steps=4, stragglers={2: 3_000_000}),
    "slow_kernels": JobSpec(ranks=4, steps=4, kernel_factors={"nvjet": 1.5}),
    "checkpoint": JobSpec(ranks=4, steps=4, step_delays={12: 20_000_000}),
}
"""Run ─▶ job of the simulator of ``hta-sql demo``; the first has no fault."""

SLOW_LINK = Job(
    framework="pipeline",
    ranks=8,
    tensor=2,
    stages=4,
    micro_batches=4,
    layers=2,
    pipeline_ns=100_000,
    links=(SlowLink(10, pair=(2, 4)),),
)
"""A pipeline in which transfers between ranks 2 and 4 take ten times as long."""

RECORDED = {
    "never_entered": "recorded/hangs/never_entered_group",
    "no_hang": "recorded/hangs/healthy",
    "recorded_loader": "recorded/faults/slow_loader",
    "alone": "late_0.json",
}
"""Run ─▶ file or folder in tests/traces."""

SHARED = {"bert": "bert_small_h100", "dlrm": "dlrm_8rank_v100", "megatron": "megatron_tp2_v100"}
"""Run ─▶ folder of a public job."""


def ingest_jobs(store: Path, folder: Path) -> None:
    """Write the traces of the jobs into a folder, and ingest them and the recorded jobs.

    Public jobs are added if they are available.
    """
    for run, spec in MADE.items():
        write_job(folder / run, spec)
    kineto.write(folder / "slow_link", SLOW_LINK, simulate(SLOW_LINK))
    _write(folder / "one_gpu", trace())
    _write(folder / "engine", engine(continuous_batching(7, 20)))
    write_snapshots(folder / "snapshots")
    for path in sorted(folder.iterdir()):
        ingest_only(path, store, run=path.name)
    for run, name in RECORDED.items():
        ingest_only(TRACES / name, store, run=run)
    ingest_only([str(TRACES / f"waits_{rank}.json") for rank in (0, 1)], store, run="waits")
    for run, name in SHARED.items():
        if (PUBLIC / name).is_dir():
            ingest_only(PUBLIC / name, store, run=run)


def _write(folder: Path, content: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True)
    (folder / "rank0.json").write_text(json.dumps(content), encoding="utf-8")


Call = tuple[str, dict[str, Any]]


def filled(call: Call, runs: Callable[[str], str]) -> Call:
    """Replace the names of runs in a call of the skill."""
    name, given = call
    text = json.dumps(given)
    for word in ("RUN", "BASE", "CHANGE"):
        text = text.replace(word, runs(word))
    return name, json.loads(text)
