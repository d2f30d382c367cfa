"""From ranks that were read to a store that has them: entries for the manifest."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from hta_sql.ingestion.rank import RankResult
from hta_sql.library.sql_files import columns_digest
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.manifest import TABLES, RankEntry
from hta_sql.traces.names import path_text


def entry_of(result: RankResult, options: dict[str, Any]) -> RankEntry:
    """Turn what a job returned into its line of the manifest.

    Args:
        result: What it returned.
        options: What beside the trace decided what is stored.
    """
    job = result.job
    files = {
        file.table: {
            "path": f"{TABLES}/{file.path}",
            "rows": file.rows,
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
        options=options,
        files=files,
        schema=columns_digest(),
        process=job.process,
        end_ns=job.end_ns,
        ingested_ns=time.time_ns(),
        facts=result.facts,
        span=job.span,
    )


def settle(folder: StoreFolder, entries: Iterable[RankEntry]) -> None:
    """See to it that the files of entries survive a power loss, before anything names them."""
    folder.settle(file["path"] for entry in entries for file in entry.files.values())
