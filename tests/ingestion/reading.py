"""Ingestion of one file as one rank, to inspect its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from hta_sql.ingestion.rank import ingest_rank
from hta_sql.ingestion.rank_job import RankJob, RankResult

FILE_WIDE = (
    *("ranks", "devices", "process_groups", "steps", "stacks"),
    *("event_args", "quarantine"),
)
"""Tables whose rows do not each represent one event."""

Tables = dict[str, list[dict[str, Any]]]


class Reading:
    """The tables of one ingested trace, with rows in file order."""

    def __init__(self, path: Path, **options: Any) -> None:
        tables = path.parent / f"{path.name}.tables"
        job = RankJob(str(path), "run", 0, "given", str(tables), **options)
        self.result: RankResult = ingest_rank(job)
        self.tables: Tables = {}
        with duckdb.connect() as con:
            for file in self.result.files:
                found = con.read_parquet(str(tables / file.path))
                rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
                self.tables[file.table] = [
                    {name: value for name, value in row.items() if name != "source"} for row in rows
                ]

    @property
    def kept(self) -> set[int]:
        """Return the ids of the events that are stored in tables."""
        return {
            row["event_id"]
            for table, rows in self.tables.items()
            if table not in FILE_WIDE
            for row in rows
        }

    @property
    def quarantine(self) -> list[dict[str, Any]]:
        """Return the rows of ``quarantine``, which are lost and repaired events."""
        return self.tables.get("quarantine", [])

    @property
    def lost(self) -> set[int]:
        """Return the ids of the lost events."""
        return {
            row["event_id"]
            for row in self.quarantine
            if row["is_lost"] and row["event_id"] is not None
        }

    @property
    def names(self) -> list[str]:
        """Return the names of the stored events in file order."""
        named = {
            row["event_id"]: row.get("name", "[memory]")
            for table, rows in self.tables.items()
            if table not in FILE_WIDE
            for row in rows
        }
        return [named[event_id] for event_id in sorted(named)]

    def check_nothing_vanished(self) -> None:
        """Assert that every event in the file is either stored or lost."""
        assert not self.kept & self.lost
        assert self.kept | self.lost == set(range(self.result.event_count))

    def without_offsets(self) -> Tables:
        """Return the tables without byte offsets in ``quarantine``, which may depend on chunks."""
        tables = dict(self.tables)
        if "quarantine" in tables:
            rows = [
                {**row, "byte_offset": None, "byte_count": None} for row in tables["quarantine"]
            ]
            tables["quarantine"] = sorted(rows, key=repr)
        return tables
