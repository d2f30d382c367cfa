"""Measure how long a source tree of hta_sql takes to ingest a job, open it and run analyses.

The file imports only hta_sql, from ``PYTHONPATH``, so that the same code can measure two commits.
Each process runs one task: ``ingest``, ``open``, ``methods`` or ``questions``.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

METHODS = (
    "temporal_breakdown",
    *("gpu_kernel_types", "gpu_kernels_by_name"),
    "idle_time_breakdown",
    "comm_comp_overlap",
    "cuda_kernel_launch_stats",
)
"""Analyses that have a counterpart in HTA."""


def ingest(asked: dict[str, Any]) -> dict[str, float]:
    """Ingest a job into a new store."""
    import hta_sql  # noqa: PLC0415
    import hta_sql.ingestion.ingest  # noqa: PLC0415
    import hta_sql.store.query.trace_store  # noqa: PLC0415

    started = _cpu()
    hta_sql.ingest(asked["traces"], asked["store"]).close()
    return {"ingest": _cpu() - started}


def opened(asked: dict[str, Any]) -> dict[str, float]:
    """Open a store and run a first analysis."""
    import pyarrow as pa  # noqa: F401, PLC0415

    import hta_sql  # noqa: PLC0415
    import hta_sql.store.query.trace_store  # noqa: PLC0415

    started = _cpu()
    with hta_sql.open(asked["store"]) as store:
        store.run("temporal_breakdown")
        return {"open and first answer": _cpu() - started}


def methods(asked: dict[str, Any]) -> dict[str, float]:
    """Run the analyses with a counterpart in HTA on an open store."""
    import hta_sql  # noqa: PLC0415

    with hta_sql.open(asked["store"]) as store:
        store.run("kernels_across_ranks").df()
        started = _cpu()
        for name in METHODS:
            store.run(name).df()
        return {"five methods of HTA": _cpu() - started}


def questions(asked: dict[str, Any]) -> dict[str, float]:
    """Run every analysis twice; only the second run counts."""
    import hta_sql  # noqa: PLC0415

    taken = {}
    with hta_sql.open(asked["store"]) as store:
        for analysis in store.library.newest():
            try:
                for _ in range(2):
                    started = _cpu()
                    store.run(analysis.base_name)
                    taken[analysis.base_name] = _cpu() - started
            except hta_sql.HtaSqlError:
                taken.pop(analysis.base_name, None)
    return {"every analysis": sum(taken.values()), **{f"  {n}": s for n, s in taken.items()}}


def _cpu() -> float:
    import resource  # noqa: PLC0415 - after what is measured was imported

    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    tasks = {"ingest": ingest, "open": opened, "methods": methods, "questions": questions}
    print(json.dumps(tasks[request["task"]](request)))
