"""Chunks of text ─▶ one staged table per kind of event, batch by batch.

Only the text of what the engine holds at the moment is in memory; what stays
of a batch is typed and small. A chunk that the parser refuses comes back as
text, is rescued event by event, and goes through the same statements.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Iterator
from itertools import chain, count, islice

import duckdb
import pyarrow as pa

from hta_sql.errors import TraceFormatError
from hta_sql.ingestion.chunks import Chunk, TraceReader
from hta_sql.ingestion.salvage import Rescued, rescue
from hta_sql.sqlfiles import ingest_sql

log = logging.getLogger(__name__)

EXTRACTED = (
    "cpu_ops",
    "runtime_calls",
    "gpu_ops",
    "annotations",
    "python_calls",
    "memory_events",
    "flows",
    "counters",
    "other_events",
)

BATCH_CHUNKS = 256
"""64 MB of text. A batch costs the binding of some twenty statements, about 30 ms, so small
batches are dear (8 MB: a quarter more CPU); large ones hold more parsed events."""

PLACEHOLDER = b"{}"
"""Stands for a lost event, so that those behind it keep their position in traceEvents."""

_OFFSETS, _NUMBER = struct.Struct("=ii"), struct.Struct("=q")
_CHUNK_SCHEMA = pa.schema([("chunk", pa.int64()), ("text", pa.string()), ("bytes", pa.binary())])


def stage_events(
    con: duckdb.DuckDBPyConnection, reader: TraceReader | None, *, strict: bool = False
) -> int:
    """Parse a trace into staged tables.

    Args:
        con: An empty in-memory database.
        reader: The trace; None makes the tables of a trace without events.
        strict: Refuse the trace at the first event that has to be repaired or left out.

    Returns:
        Number of events, those that were lost included.

    Raises:
        TraceFormatError: The file is not a trace, or strict and not flawless.
    """
    event_count = 0
    chunks: Iterator[Chunk] = iter(reader or ())
    con.execute(ingest_sql("link/quarantined"))
    for number in count():
        first = next(chunks, None)
        if first is None and number:
            break
        batch = chain([first], islice(chunks, BATCH_CHUNKS - 1)) if first else iter(())
        _parse(con, batch, into_new=True)
        lost = _rescue_refused(con, reader)
        con.execute(ingest_sql("parse/chunk_starts"), {"first_event_id": event_count})
        if number == 0:
            _create_staged_tables(con)
        for table in EXTRACTED:
            con.table(f"extracted_{table}").insert_into(f"staged_{table}")
        _quarantine(con, reader, lost)
        event_count += len(con.table("parsed_events"))
        con.execute("DROP TABLE parsed_events")
        if strict:
            _refuse_flaws(con, reader)
    _quarantine_file_problems(con, reader)
    if strict:
        _refuse_flaws(con, reader)
    return event_count


def _parse(con: duckdb.DuckDBPyConnection, batch: Iterable[Chunk], *, into_new: bool) -> None:
    """Read and cut while DuckDB parses."""
    con.register("chunks", pa.RecordBatchReader.from_batches(_CHUNK_SCHEMA, map(_arrow, batch)))
    if into_new:
        con.execute(ingest_sql("parse/events_of_chunks"))
        con.table("events_of_chunks").create("parsed_events")
    else:
        con.table("events_of_chunks").insert_into("parsed_events")


def _arrow(chunk: Chunk) -> pa.RecordBatch:
    """Hand one chunk over, as text and as bytes, without copying either.

    From buffers, not by pa.array(): that imports pandas, which costs more than a small trace.
    """
    ends, content = pa.py_buffer(_OFFSETS.pack(0, len(chunk.text))), pa.py_buffer(chunk.text)
    text, raw = (
        pa.Array.from_buffers(kind, 1, [None, ends, content]) for kind in (pa.string(), pa.binary())
    )
    number = pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(_NUMBER.pack(chunk.number))])
    return pa.RecordBatch.from_arrays([number, text, raw], schema=_CHUNK_SCHEMA)


def _create_staged_tables(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(ingest_sql("parse/batch_events"))
    for table in (*EXTRACTED, "quarantine"):
        con.execute(ingest_sql(f"extract/{table}"))
    for table in EXTRACTED:
        con.table(f"extracted_{table}").limit(0).create(f"staged_{table}")


def _rescue_refused(
    con: duckdb.DuckDBPyConnection, reader: TraceReader | None
) -> dict[tuple[int, int], Rescued]:
    """Replace refused chunks by what can be rescued of them.

    Returns:
        (chunk, position) ─▶ the span, of every event that was lost or repaired.
    """
    refused = con.execute(ingest_sql("parse/refused_chunks")).fetchall()
    if not refused or reader is None:
        return {}
    con.execute(ingest_sql("parse/drop_refused"))
    flawed: dict[tuple[int, int], Rescued] = {}
    for chunk, text in refused:
        spans = _accepted(con, list(rescue(bytes(text))))
        flawed |= {(chunk, n): span for n, span in enumerate(spans) if span.reason}
        rescued = b",".join(span.text or PLACEHOLDER for span in spans)
        if rescued:
            _parse(con, [Chunk(chunk, reader.offsets[chunk], rescued)], into_new=False)
    return flawed


def _accepted(con: duckdb.DuckDBPyConnection, spans: list[Rescued]) -> list[Rescued]:
    """Give up rescued events that the engine still refuses, each tried alone."""
    tried = pa.RecordBatchReader.from_batches(
        _CHUNK_SCHEMA,
        (_arrow(Chunk(n, 0, span.text or PLACEHOLDER)) for n, span in enumerate(spans)),
    )
    con.register("chunks", tried)
    refused = {
        n
        for (n,) in con.table("events_of_chunks")
        .filter("target = 'refused'")
        .project("chunk")
        .fetchall()
    }
    return [
        Rescued(span.start, span.source, None, "broken JSON: the engine cannot read it")
        if n in refused
        else span
        for n, span in enumerate(spans)
    ]


def _quarantine(
    con: duckdb.DuckDBPyConnection,
    reader: TraceReader | None,
    flawed: dict[tuple[int, int], Rescued],
) -> None:
    """Note what was lost or repaired of this batch, and where it stands in the file."""
    set_aside = con.table("extracted_quarantine").fetchall()
    if reader is None or not (set_aside or flawed):
        return
    starts = dict(con.execute("SELECT chunk, first_event_id FROM chunk_starts").fetchall())
    noted: list[tuple[object, ...]] = []
    for event_id, chunk, position, reason, excerpt in set_aside:
        if (chunk, position) not in flawed or flawed[chunk, position].text is not None:
            noted.append((event_id, reader.offsets[chunk], None, True, reason, excerpt))
    for (chunk, position), span in flawed.items():
        offset = reader.offsets[chunk] + span.start
        lost = span.text is None
        noted.append(
            (starts[chunk] + position, offset, len(span.source), lost, span.reason, span.excerpt)
        )
    _note(con, noted)


def _quarantine_file_problems(con: duckdb.DuckDBPyConnection, reader: TraceReader | None) -> None:
    problems = reader.problems if reader else []
    _note(con, [(None, p.byte_offset, p.byte_count, True, p.reason, p.excerpt) for p in problems])


def _note(con: duckdb.DuckDBPyConnection, rows: list[tuple[object, ...]]) -> None:
    names = ("event_id", "byte_offset", "byte_count", "is_lost", "reason", "excerpt")
    for row in rows:
        con.execute(ingest_sql("link/add_quarantined"), dict(zip(names, row, strict=True)))


def _refuse_flaws(con: duckdb.DuckDBPyConnection, reader: TraceReader | None) -> None:
    first = con.execute(ingest_sql("link/first_flaw")).fetchall()
    if first and reader:
        offset, reason, excerpt = first[0]
        raise TraceFormatError(
            f"{reader.name}: {reason}, at byte {offset}: {excerpt[:80]!r}. "
            "Without strict it is set aside and the rest is read."
        )
