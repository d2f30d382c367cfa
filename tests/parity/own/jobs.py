"""The project's own jobs, which every clone has: simulated, recorded on a CPU, and handwritten.

``python -m tests.parity.own.jobs FOLDER`` writes their traces and a list of the files for
``ask_hta.py``.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hta_sql
from hta_sql.synthetic import JobSpec, write_job

TRACES = Path(__file__).parents[2] / "traces"

PLAIN: dict[str, Any] = {
    "steps": 3,
    "layers": 1,
    "ops_per_layer": 4,
    "driver_launches": False,
    "base_time_ns": 0,
    "start_ns": 1_000_000,
    "gzip": False,
}
"""Options of small jobs whose launch calls HTA knows (Q37) and whose clock starts near zero."""

SIMULATED = {
    "simulated": JobSpec(ranks=2, **PLAIN),
    "simulated_old_names": JobSpec(
        ranks=2,
        nccl_names="old",
        collective_metadata=False,
        stragglers={1: 2_000_000},
        seed=3,
        **PLAIN,
    ),
    "simulated_syncs": JobSpec(
        ranks=1, sync_events=True, python_stacks=True, memory_events=True, seed=1, **PLAIN
    ),
    "simulated_graphs": JobSpec(ranks=1, graph_launches=True, seed=4, **PLAIN),
    "simulated_losses": JobSpec(ranks=1, early_kernels=2, lost_launch_every=9, seed=2, **PLAIN),
}
RECORDED = {"recorded_cpu": ["recorded/mlp_cpu_torch_2_13.json.gz"]}
BY_HAND = {
    "kernels_by_name": ["kernels_by_name.json"],
    "path_overlap": ["path_overlap.json"],
    "path_stream_sync": ["path_stream_sync.json"],
}
OWN_JOBS = [*SIMULATED, *RECORDED, *BY_HAND]

OWN_PAIRS = {
    "pair_simulated": ("simulated", "simulated_old_names"),
}
"""Pair ─▶ control job and test job."""


def write_own_jobs(folder: Path) -> dict[str, list[Path]]:
    """Write the traces of every job into separate folders; return job ─▶ files in rank order."""
    files: dict[str, list[Path]] = {}
    for job, spec in SIMULATED.items():
        files[job] = [_plain(path) for path in write_job(folder / job, spec).files]
    for job, names in {**RECORDED, **BY_HAND}.items():
        (folder / job).mkdir(parents=True)
        files[job] = [Path(shutil.copy(TRACES / name, folder / job)) for name in names]
    return files


def _plain(path: Path) -> Path:
    """Simplify a trace, so that HTA's result depends only on what is compared.

    Times are rounded to eighths of a microsecond, which floats add exactly (Q6). Profiler steps on
    the device are removed, because older profilers did not write them (Q15).
    """
    trace = json.loads(path.read_text(encoding="utf-8"))
    kept = []
    for event in trace["traceEvents"]:
        if event.get("cat") == "gpu_user_annotation" and "ProfilerStep" in event["name"]:
            continue
        if "dur" in event:
            event["dur"] = _eighths(event["ts"] + event["dur"]) - _eighths(event["ts"])
        if "ts" in event:
            event["ts"] = _eighths(event["ts"])
        kept.append(event)
    path.write_text(json.dumps(trace | {"traceEvents": kept}), encoding="utf-8")
    return path


def _eighths(time: float) -> float:
    return round(8 * time) / 8


def digest_of(files: list[Path]) -> str:
    """Return a digest of the contents of files."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def own_files() -> dict[str, list[Path]]:
    """Write the traces of every job once per process; return job ─▶ files."""
    folder = TemporaryDirectory(prefix="own-jobs-")
    atexit.register(folder.cleanup)
    return write_own_jobs(Path(folder.name))


def ingest_own_jobs(store: Path) -> None:
    """Ingest every job as a separate run."""
    for job, files in own_files().items():
        traces = {rank: str(path) for rank, path in enumerate(files)}
        hta_sql.ingest_shard(traces, store, run=job, jobs=1, shard=(1, 1))
    hta_sql.publish(store).close()


def main(folder: Path) -> None:
    """Write the traces, and jobs.json: job ─▶ its digest and its files by rank."""
    written = write_own_jobs(folder)
    listed = {
        job: {
            "digest": digest_of(files),
            "files": {str(rank): str(path.resolve()) for rank, path in enumerate(files)},
        }
        for job, files in written.items()
    }
    about = {"jobs": listed, "pairs": OWN_PAIRS}
    (folder / "jobs.json").write_text(json.dumps(about, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
