"""Builds manifest entries of ingested ranks."""

from __future__ import annotations

import time
from typing import Any

from hta_sql.ingestion.rank_job import RankResult
from hta_sql.library.sql_files import columns_digest
from hta_sql.store.disk.manifest import TABLES, RankEntry
from hta_sql.traces.names import path_text


def entry_of(result: RankResult, stored_as: dict[str, Any]) -> RankEntry:
    """Return the manifest entry of an ingested rank.

    Args:
        result: Result of the rank's job.
        stored_as: Digests of definitions and rules, which determine the stored data together with
            the trace.
    """
    job = result.job
    files = {
        file.table: {
            "path": f"{TABLES}/{file.path}",
            "rows": file.rows,
            "file_rows": file.file_rows,
            "bytes": file.bytes,
            "sha256": file.sha256,
        }
        for file in result.files
    }
    return RankEntry(
        run=job.run,
        rank=job.rank,
        source=path_text(job.path),
        fingerprint=result.fingerprint,
        rank_source=job.rank_source,
        event_count=result.event_count,
        quarantined=result.quarantined,
        start_ns=result.start_ns,
        step_names=result.steps,
        options=stored_as,
        files=files,
        schema=columns_digest(),
        process=job.process,
        end_ns=job.end_ns,
        ingested_ns=time.time_ns(),
        facts=result.facts,
        span=job.span,
        role=job.role,
        role_source=job.role_source,
        first_rank=job.first_rank,
        pid=job.pid,
    )
