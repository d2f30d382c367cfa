"""Results of an ingest or a publish, for the caller."""

from __future__ import annotations

from dataclasses import dataclass, field

from hta_sql.store.disk.manifest import RankEntry


@dataclass(frozen=True)
class IngestReport:
    """Result of an ingest: ranks read, ranks unchanged, and their runs.

    Attributes:
        results: Ranks that were read.
        unchanged: Ranks that the store already had.
        runs: Runs of all these ranks.
        resumed: Ranks that an interrupted ingest had already read.
    """

    results: list[RankEntry]
    unchanged: list[RankEntry]
    runs: list[str]
    resumed: list[RankEntry] = field(default_factory=list)


@dataclass(frozen=True)
class PublishReport:
    """Result of a publish: merged shards, missing shards, and traces that failed."""

    merged: list[str]
    missing: list[str]
    failures: list[str]
    ranks: int
