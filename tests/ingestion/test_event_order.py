"""Both readers write every table and its links in event order."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from unittest.mock import Mock, patch

import duckdb
import pytest

from hta_sql.ingestion import native, staged_tables, staging
from hta_sql.ingestion.rank import ingest_rank
from hta_sql.ingestion.rank_job import RankJob
from hta_sql.ingestion.running.side_by_side import Beside
from hta_sql.ingestion.statements import run
from hta_sql.library.sql_files import ingest_sql
from tests.ingestion.readers import needs_native
from tests.ingestion.small_trace import EVENTS, Event, document

Tables = dict[str, list[tuple[object, ...]]]

ASCEND = Path(__file__).parent.parent / "traces" / "ascend_trace_view.json"


def shuffled(count: int, *, odd: int) -> list[Event]:
    """Return events for every table in random time order; every ``odd``-th event is irregular.

    An irregular event has a thread id with a decimal point.
    """
    random = Random(5)
    events = []
    for n in range(count):
        event = dict(EVENTS[1 + n % (len(EVENTS) - 1)])
        event["ts"] = 1000 + random.randrange(100_000)
        if odd and n % odd == 0:
            event["tid"] = 7.5
        events.append(event)
    return [EVENTS[0], *events]


def job_of(path: Path, folder: Path) -> RankJob:
    """Return an ingest job that cuts the trace into chunks of a few events."""
    return RankJob(str(path), "run", 0, "given", str(folder), chunk_bytes=2000)


def stored(job: RankJob) -> Tables:
    """Ingest a rank and return the rows of each table in file order."""
    with duckdb.connect() as con:
        return {
            file.table: con.read_parquet(f"{job.tables}/{file.path}").fetchall()
            for file in ingest_rank(job).files
        }


def ids(rows: list[tuple[object, ...]]) -> list[int]:
    """Return the event ids, which are the third column of every event table."""
    return [int(str(row[2])) for row in rows]


@needs_native
@pytest.mark.parametrize("odd", [0, 1, 7, 40])
def test_rows_stand_in_event_order(tmp_path: Path, odd: int) -> None:
    """Rows are in event order, although irregular chunks are parsed after the rest of a batch."""
    path = tmp_path / "trace.json"
    path.write_bytes(document(shuffled(400, odd=odd)))
    job = job_of(path, tmp_path / "tables")
    tables = stored(job)
    assert len(tables) > len(staged_tables.EXTRACTED)
    for table in staged_tables.EXTRACTED:
        assert ids(tables[table]) == sorted(ids(tables[table])), table
    with patch.object(staging, "native_batch", Mock(return_value=None)):
        assert stored(job) == tables


@needs_native
@pytest.mark.parametrize("odd", [0, 40])
def test_what_is_copied_beside_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: int
) -> None:
    """With two threads, rows are copied in a background thread, with the same result."""
    path = tmp_path / "trace.json"
    path.write_bytes(document(shuffled(3000, odd=odd)))
    job = job_of(path, tmp_path / "tables")
    alone = stored(job)
    begun = []
    do = Beside.do

    def noted(self: Beside, task: object) -> None:
        begun.append(task)
        do(self, task)  # type: ignore[arg-type]

    monkeypatch.setattr(Beside, "do", noted)
    monkeypatch.setattr(staged_tables, "MOST_HELD", 0)
    monkeypatch.setattr(native, "MOST_HELD", 20_000)
    assert stored(replace(job, threads=2)) == alone
    assert len(begun) > 3


def test_what_ascend_moves(tmp_path: Path) -> None:
    """Device events of Ascend are moved to other tables, which stay in event order."""
    path = tmp_path / "trace.json"
    kernel = EVENTS[6] | {"ts": 1.0}
    events = json.loads(ASCEND.read_bytes())
    path.write_text(json.dumps([*events, kernel]), encoding="utf-8")
    tables = stored(job_of(path, tmp_path / "tables"))
    assert len(tables["gpu_ops"]) > 1
    for table in ("gpu_ops", "runtime_calls", "other_events"):
        assert ids(tables[table]) == sorted(ids(tables[table])), table


def test_tables_out_of_order_are_told() -> None:
    """Tables that are not in event order are detected, even if only one of many rows is wrong."""
    with duckdb.connect(config={"threads": 4}) as con:
        for table in staged_tables.EXTRACTED:
            con.execute(
                f"CREATE TABLE staged_{table} AS SELECT range AS event_id FROM range(300_000)"  # noqa: S608 - ours
            )
        assert run(con, ingest_sql("staged", "out_of_order")).fetchall() == []
        con.execute("INSERT INTO staged_flows VALUES (299_998)")
        con.execute(
            "CREATE OR REPLACE TABLE staged_gpu_ops AS FROM (VALUES (2), (1), (3)) AS g(event_id)"
        )
        told = run(con, ingest_sql("staged", "out_of_order")).fetchall()
        assert sorted(told) == [("flows",), ("gpu_ops",)]


def test_links_of_another_event_are_refused() -> None:
    """``same_event`` raises an error if two event ids differ."""
    with duckdb.connect() as con:
        run(con, ingest_sql("ids", "same_event"))
        assert con.execute("SELECT same_event(7, 7)").fetchall() == [(7,)]
        for there in ("8", "NULL"):
            with pytest.raises(duckdb.InvalidInputException, match="event 7 stands where"):
                con.execute(f"SELECT same_event(7, {there})")


def test_what_a_task_raises_is_raised_at_the_next() -> None:
    """The next call to ``do`` or ``wait`` raises the exception of a failed background task."""

    def fail(con: duckdb.DuckDBPyConnection) -> None:
        con.execute("FROM nothing")

    def make(con: duckdb.DuckDBPyConnection) -> None:
        con.execute("CREATE TABLE made (one INTEGER)")

    with duckdb.connect() as con:
        beside = Beside(con)
        beside.do(fail)
        with pytest.raises(duckdb.CatalogException):
            beside.do(make)
        beside.do(make)
        beside.wait()
        assert con.table("made").fetchall() == []
        beside.do(fail)
        beside.close()
