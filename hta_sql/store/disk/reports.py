"""What an ingest or a publish did to a store, as far as whoever asked for it wants to know."""

from __future__ import annotations

from dataclasses import dataclass, field

from hta_sql.store.disk.manifest import RankEntry


@dataclass(frozen=True)
class IngestReport:
    """What an ingest did: the ranks it read, those it found unchanged, and the runs.

    Attributes:
        results: Ranks that it read.
        unchanged: Ranks that the store has already.
        runs: Runs of all of them.
        resumed: Ranks that an interrupted ingest had read.
    """

    results: list[RankEntry]
    unchanged: list[RankEntry]
    runs: list[str]
    resumed: list[RankEntry] = field(default_factory=list)


@dataclass(frozen=True)
class PublishReport:
    """What a publish did: the shards it merged, those that are missing, the traces that failed."""

    merged: list[str]
    missing: list[str]
    failures: list[str]
    ranks: int
