"""Locations of the public jobs and of the reference results for them."""

from __future__ import annotations

from pathlib import Path

import hta_sql
from hta_sql.store.catalog.materialize import materialize
from tests.parity.own.jobs import OWN_JOBS, own_files

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
TRACES = SHARED / "traces"
EXACT = SHARED / "expected" / "exact"
HTA = SHARED / "expected" / "hta"

JOBS = sorted(path.stem for path in EXACT.glob("*.json"))
"""Every job that has a brute-force result; empty if the folder is missing."""


def files_of(job: str) -> list[Path]:
    """List the trace files of a job."""
    if job in OWN_JOBS:
        return own_files()[job]
    return sorted(path for path in (TRACES / job).iterdir() if path.is_file())


def ingest_jobs(store: Path) -> None:
    """Ingest every job as a separate run, and write the catalog once at the end.

    Derived tables are materialized, because several processes read the store.
    """
    for job in JOBS:
        hta_sql.ingest_shard(TRACES / job, store, run=job, jobs=1, shard=(1, 1))
    hta_sql.publish(store).close()
    materialize(store)
