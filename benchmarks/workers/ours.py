"""Run one task of hta_sql per process: ``ingest``, ``reopen``, ``analyses`` or ``scale``."""

from __future__ import annotations

from typing import Any

from benchmarks.workers.laps import Laps, request


def ingest(asked: dict[str, Any]) -> None:
    """Ingest a job into a new store."""
    laps = Laps()
    # Import everything that ingest() imports, so that its lap measures work alone. With many ranks,
    # worker processes import again, which remains part of the lap.
    import hta_sql  # noqa: PLC0415
    import hta_sql.ingestion.ingest  # noqa: PLC0415
    import hta_sql.store.query.trace_store  # noqa: PLC0415

    laps.lap("import")
    store = hta_sql.ingest(asked["traces"], asked["store"], jobs=asked.get("jobs"))
    laps.lap("ingest")
    ((events,),) = store.sql("SELECT sum(event_count)::BIGINT FROM ranks").rows()
    sources = store.sql("SELECT rank, source FROM ranks WHERE run = (SELECT min(run) FROM ranks)")
    files = {str(rank): path for rank, path in sources.rows()}
    store.close()
    laps.print(events=events, files=files)


def reopen(asked: dict[str, Any]) -> None:
    """Open a store and run one query."""
    laps = Laps()
    import hta_sql  # noqa: PLC0415
    import hta_sql.store.query.trace_store  # noqa: PLC0415

    laps.lap("import")
    store = hta_sql.open(asked["store"])
    laps.lap("open")
    rows = store.run("temporal_breakdown").rows()
    laps.lap("first answer", rows=len(rows))
    store.close()
    laps.print()


def scale(asked: dict[str, Any]) -> None:
    """Ingest a job with a memory limit, and run one query on the store."""
    laps = Laps()
    import hta_sql  # noqa: PLC0415
    import hta_sql.ingestion.ingest  # noqa: PLC0415

    laps.lap("import")
    store = hta_sql.ingest(asked["traces"], asked["store"], memory_limit=asked["memory_limit"])
    laps.lap("ingest")
    rows = store.run("temporal_breakdown").rows()
    laps.lap("first answer", rows=len(rows))
    ((events,),) = store.sql("SELECT sum(event_count)::BIGINT FROM ranks").rows()
    store.close()
    laps.print(events=events)


def analyses(asked: dict[str, Any]) -> None:
    """Run each analysis once, and convert each result to a pandas frame, as HTA returns it."""
    import pandas as pd  # noqa: F401, PLC0415 - not a part of the first analysis

    import hta_sql  # noqa: PLC0415

    store = hta_sql.open(asked["store"])
    laps = Laps()
    for name in asked["names"]:
        try:
            frame = store.run(name).df()
        except hta_sql.HtaSqlError as error:
            laps.lap(name, error=f"{type(error).__name__}: {error}"[:200])
        else:
            laps.lap(name, rows=len(frame))
    store.close()
    laps.print()


if __name__ == "__main__":
    asked = request()
    tasks = {"ingest": ingest, "reopen": reopen, "analyses": analyses, "scale": scale}
    tasks[asked["task"]](asked)
