"""Input and output of the ingest of a rank: small, picklable descriptions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hta_sql.ingestion.tables import StoredFile
from hta_sql.store.disk.manifest import Fingerprint
from hta_sql.traces.chunks import CHUNK_BYTES
from hta_sql.traces.names import path_text


@dataclass(frozen=True)
class RankJob:
    """Input of a rank's ingest: the trace, its identity, and resource limits."""

    path: str
    run: str
    rank: int
    rank_source: str
    tables: str
    threads: int = 1
    memory_limit: str | None = None
    kernel_classes: str | None = None
    captures: tuple[str, ...] = ()
    """Captures of the graphs that the trace replays."""
    kernel_files: tuple[str, ...] = ()
    """Inductor's files about the kernels that the trace launches."""
    chunk_bytes: int = CHUNK_BYTES
    strict: bool = False
    process: str | None = None
    end_ns: int | None = None
    pid: int | None = None
    span: int = 0
    """Index of the recording of the rank; each recording has its own range of event ids."""
    role: str | None = None
    """Role of the process in a job with several roles."""
    role_source: str | None = None
    first_rank: int = 0
    """Offset that was added to the rank that the trace states; see :class:`RankEntry`."""
    writer: str = ""
    """Prefix of file names, which identifies the owner until a manifest references the files."""
    size: int = 0
    """Size of the file, possibly compressed [bytes]; 0 if unknown."""
    is_small: bool = False
    """Whether the shared engine of the process is sufficient.

    True if no memory limit is set and the machine's memory is not nearly exhausted.
    """


@dataclass(frozen=True)
class RankResult:
    """Result of a rank's ingest."""

    job: RankJob
    fingerprint: Fingerprint
    """Fingerprint of the bytes that were read."""
    files: list[StoredFile]
    event_count: int
    quarantined: int
    start_ns: int | None
    seconds: float
    steps: list[str] = field(default_factory=list)
    has_base_time: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    """Columns that the view ``runs`` shows; see store/catalog/rank_scope.py."""


@dataclass(frozen=True)
class ReadTrace:
    """A trace whose events are staged."""

    job: RankJob
    fingerprint: Fingerprint
    metadata: dict[str, Any]
    event_count: int = 0
    text_bytes: int = 0
    """Number of (decompressed) bytes that were read."""
    part: int = 0
    """Number of the trace among traces that are read together: the upper bits of its event ids."""


def job_row(trace: ReadTrace) -> dict[str, Any]:
    """Return a row of the table ``job``."""
    return {
        "part": trace.part,
        "run": trace.job.run,
        "rank": trace.job.rank,
        "rank_source": trace.job.rank_source,
        "role": trace.job.role,
        "first_rank": trace.job.first_rank,
        "source": path_text(trace.job.path),
        "event_count": trace.event_count,
        "text_bytes": trace.text_bytes,
        "metadata": json.dumps(trace.metadata),
    }
