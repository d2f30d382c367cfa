"""Stages chunks of text: one staged table per kind of event, batch by batch.

Only the text that the engine currently processes is in memory; the staged rows of a batch are typed
and small. A chunk that the parser rejects is returned as text, rescued event by event, and goes
through the same statements.
"""

from __future__ import annotations

import logging
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain, count, islice, starmap

import duckdb
import pyarrow as pa

from hta_sql.errors import TraceFormatError
from hta_sql.ingestion.native import CHUNK_BITS, native_batch
from hta_sql.ingestion.quarantine_offsets import quarantine_pending
from hta_sql.ingestion.staged_tables import Staged, number
from hta_sql.ingestion.statements import run
from hta_sql.ingestion.trace_batch import TraceBatch
from hta_sql.ingestion.vendors.ascend import adopt_ascend_events, ascend_traces
from hta_sql.library.arguments import argument_macros
from hta_sql.library.sql_files import ingest_sql
from hta_sql.library.sqltext import create_table, drop_table, insert
from hta_sql.library.vendors import category_macros
from hta_sql.traces.chunks import TOO_LONG, Chunk, TraceReader
from hta_sql.traces.salvage import Rescued, rescue, too_long

log = logging.getLogger(__name__)

BATCH_CHUNKS = 256
"""Number of chunks per batch: 64 MB of text.

Each batch binds about twenty statements, which takes about 30 ms, so small batches are expensive (8
MB: 25 % more CPU). Large batches keep more parsed events in memory.
"""

RESCUED_AT_ONCE = 16
"""Maximum number of rejected chunks in memory as Python objects: about 50 MB."""

FLAWS_AT_ONCE = 1000
"""Maximum number of defects per statement; each bound parameter costs 2 KB in the engine."""

MAX_BROKEN = 1_000_000
"""Maximum excess of malformed over valid events before a file is rejected.

Each malformed event costs about 50 us in Python. If every event is malformed, a megabyte costs 26
times as much as a valid megabyte; such a file is rejected here. If there is one malformed event in
each chunk, it costs four to seven times as much.
"""

PLACEHOLDER = b"{}"
"""Replaces a lost event, so that later events keep their position in traceEvents."""

_OFFSETS, _NUMBER = struct.Struct("=ii"), struct.Struct("=q")
_CHUNK_SCHEMA = pa.schema(
    [
        ("chunk", pa.int64()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("is_walked", pa.bool_()),
    ]
)


class DoubtfulCutError(Exception):
    """A chunk does not parse, perhaps because it was cut inside an event.

    The trace must be read again, event by event.
    """


def stage_events(
    con: duckdb.DuckDBPyConnection,
    batch: TraceBatch,
    *,
    strict: bool = False,
    threads: int = 1,
    most_held: int = 0,
) -> Counter[str]:
    """Parse traces into staged tables, or views in their place.

    Args:
        con: An empty in-memory database.
        batch: The traces; without one, the tables are created without rows.
        strict: Reject a single trace at the first event that must be repaired or dropped.
        threads: Number of tables to fill in parallel.
        most_held: Maximum memory of the events outside of the engine [bytes].

    Returns:
        Number of events by target table, including lost events.

    Raises:
        TraceFormatError: The file is not a trace, or has a defect in strict mode.
        DoubtfulCutError: Only a reader with ``careful=True`` can separate the events of this file.
    """
    events: Counter[str] = Counter()
    prepare(con)
    with closing(batch.chunks()) as chunks, closing(Staged(con, threads, most_held)) as staged:
        for batches in count():
            first = next(chunks, None)
            if first is None and batches:
                break
            some = chain([first], islice(chunks, BATCH_CHUNKS - 1)) if first else iter(())
            events += _stage_chunks(con, some, batch, staged)
            if strict:
                _refuse_flaws(con, batch.reader)
        if batch.reader and not strict:
            quarantine_pending(con, batch.reader)
        _quarantine_file_problems(con, batch.reader)
        if strict:
            _refuse_flaws(con, batch.reader)
        staged.show()
        by_ascend = ascend_traces(con)
        if by_ascend and batch.is_alone:
            staged.settle()
            events = adopt_ascend_events(con, events)
            staged.sort()
        elif by_ascend:
            batch.leave_out(by_ascend)
        if unwanted := [part for part in batch.left_out if batch.event_count(part)]:
            events -= staged.remove(unwanted)
    return events


def prepare(con: duckdb.DuckDBPyConnection) -> None:
    """Create the tables and macros that the statements of an ingest need, in an empty database."""
    statements = (
        ("quarantine", "quarantined"),
        ("quarantine", "pending"),
        ("parse/events", "exact_args"),
        ("ids", "part_of"),
        ("ids", "own_id"),
        ("ids", "same_event"),
        ("ids", "ranks_in_run"),
        ("ids", "end_in_run"),
        ("link/rank_frames", "frame_of"),
    )
    run(con, ingest_sql("parse/events", "event_target"))
    for statement in (*starmap(ingest_sql, statements), *category_macros(), *argument_macros()):
        run(con, statement)


def _stage_chunks(
    con: duckdb.DuckDBPyConnection, chunks: Iterable[Chunk], batch: TraceBatch, staged: Staged
) -> Counter[str]:
    """Insert each event of some chunks into its table; return the number of events by table."""
    native = native_batch()
    left = native.left(chunks) if native else iter(chunks)
    refused = next(left, None)
    parsed: dict[int, Counter[str]] = {}
    is_odd = False
    is_parsed = native is None or refused is not None
    if is_parsed:
        _parse(con, map(_arrow, chain([refused] if refused else [], left)), create_table)
        parsed = _event_counts(con)
        if batch.is_alone:
            run(con, ingest_sql("parse/salvage", "flaws"))
            is_odd = any("refused" in counts for counts in parsed.values())
            if is_odd and batch.reader:
                _rescue_refused(con, batch.reader)
                parsed = _event_counts(con)
        else:
            parsed = _without_flawed(con, parsed, batch)
    read = native.events if native else {}
    starts = number(con, batch.next_ids, read, is_parsed=is_parsed)
    for chunk, events in read.items():
        batch.count({chunk >> CHUNK_BITS: events})
    batch.count({part: counts.total() for part, counts in parsed.items()})
    counts = sum(parsed.values(), Counter[str]())
    if native:
        staged.add(native, starts)
    if is_parsed:
        staged.extract(counts)
        if batch.is_alone and ("quarantine" in counts or is_odd):
            _quarantine(con, batch.reader)
        if is_odd and batch.reader:
            _refuse_rubble(con, batch.reader)
        run(con, drop_table("parsed_events"))
    return counts + native.counts() if native else counts


def _without_flawed(
    con: duckdb.DuckDBPyConnection, parsed: dict[int, Counter[str]], batch: TraceBatch
) -> dict[int, Counter[str]]:
    """Leave out the traces with events that must be rescued or quarantined; return the others."""
    flawed = [part for part, counts in parsed.items() if counts.keys() & {"refused", "quarantine"}]
    if flawed:
        batch.leave_out(flawed)
        run(con, ingest_sql("parse/batch", "drop_traces"), {"parts": flawed})
    return {part: counts for part, counts in parsed.items() if part not in flawed}


def _parse_walked(con: duckdb.DuckDBPyConnection, chunks: Iterable[Chunk]) -> None:
    """Parse the rescued text of rejected chunks."""
    _parse(con, (_arrow(chunk, is_walked=True) for chunk in chunks), insert)


def _parse(
    con: duckdb.DuckDBPyConnection,
    chunks: Iterable[pa.RecordBatch],
    statement: Callable[[str, str], str],
) -> None:
    """Parse chunks in DuckDB, while this thread reads and cuts the next chunks."""
    refusals: list[Exception] = []

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from chunks
        except Exception as error:
            refusals.append(error)
            raise

    con.register("chunks", pa.RecordBatchReader.from_batches(_CHUNK_SCHEMA, batches()))
    select = ingest_sql("parse/events", "events_of_chunks")
    try:
        run(con, statement("parsed_events", select))
    except duckdb.Error:
        # The engine wraps an error of the reader in its own error.
        if refusals:
            raise refusals[0] from None
        raise


def _event_counts(con: duckdb.DuckDBPyConnection) -> dict[int, Counter[str]]:
    """Return the number of parsed events by trace and target table."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for part, table, events in run(con, ingest_sql("parse/batch", "event_counts")).fetchall():
        counts[part][table] = events
    return counts


def _arrow(chunk: Chunk, *, is_walked: bool = False) -> pa.RecordBatch:
    """Convert a chunk to a record batch with its text and bytes, without copying.

    A doubtful chunk has no text, so that it is rejected without parsing. Uses buffers instead of
    pa.array(), which imports pandas; that costs more than ingesting a small trace.
    """
    content = pa.py_buffer(chunk.text)
    number = _NUMBER.pack(chunk.number)
    ends = pa.py_buffer(_OFFSETS.pack(0, len(chunk.text)))
    no_text = pa.py_buffer(b"\0") if chunk.is_doubted else None
    return pa.RecordBatch.from_arrays(
        [
            pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(number)]),
            pa.Array.from_buffers(pa.string(), 1, [no_text, ends, content]),
            pa.Array.from_buffers(pa.binary(), 1, [None, ends, content]),
            pa.Array.from_buffers(pa.bool_(), 1, [None, pa.py_buffer(bytes([is_walked]))]),
        ],
        schema=_CHUNK_SCHEMA,
    )


def _rescue_refused(con: duckdb.DuckDBPyConnection, reader: TraceReader) -> None:
    """Replace rejected chunks with the events that can be rescued; record lost and repaired events.

    Raises:
        DoubtfulCutError: An event may continue in the next chunk, or the list ends inside this one.
    """
    refused = _take_refused(con)
    while refused:
        _rescue(con, reader, refused[:RESCUED_AT_ONCE])
        del refused[:RESCUED_AT_ONCE]


def _rescue(
    con: duckdb.DuckDBPyConnection, reader: TraceReader, refused: list[tuple[int, bytes]]
) -> None:
    spans_of = {}
    for chunk, text in refused:
        size = reader.too_long.get(chunk)
        spans_of[chunk] = [too_long(text, size, TOO_LONG)] if size else rescue(text)
        # The last chunk ends at the end of the list or file, not at a cut of the reader.
        is_last = reader.is_done and chunk == len(reader.offsets) - 1
        if not (reader.careful or is_last) and any(s.is_doubtful for s in spans_of[chunk]):
            raise DoubtfulCutError
    _parse_walked(con, (_joined(chunk, spans) for chunk, spans in spans_of.items()))
    # Python may accept JSON that the engine rejects: try each event of such a chunk separately.
    again = [chunk for chunk, _ in _take_refused(con)]
    for chunk in again:
        spans_of[chunk] = _accepted(con, spans_of[chunk])
    if again:
        _parse_walked(con, (_joined(chunk, spans_of[chunk]) for chunk in again))
    flaws = (
        {
            "chunk": chunk,
            "position": position,
            "byte_offset": reader.offsets[chunk] + span.start,
            "byte_count": span.byte_count,
            "is_lost": span.text is None,
            "reason": span.reason,
            "excerpt": span.excerpt,
        }
        for chunk, spans in spans_of.items()
        for position, span in enumerate(spans)
        if span.reason
    )
    while some := list(islice(flaws, FLAWS_AT_ONCE)):
        run(con, ingest_sql("parse/salvage", "add_flaws"), {"flaws": some})


def _take_refused(con: duckdb.DuckDBPyConnection) -> list[tuple[int, bytes]]:
    refused = run(con, ingest_sql("parse/salvage", "refused_chunks")).fetchall()
    run(con, ingest_sql("parse/salvage", "drop_refused"))
    return refused


def _joined(chunk: int, spans: list[Rescued]) -> Chunk:
    return Chunk(chunk, 0, b",".join(span.text or PLACEHOLDER for span in spans))


def _accepted(con: duckdb.DuckDBPyConnection, spans: list[Rescued]) -> list[Rescued]:
    """Mark rescued events as lost if the engine still rejects them."""
    _parse_walked(con, (_joined(-1 - n, [span]) for n, span in enumerate(spans)))
    alone = {-1 - chunk for chunk, _ in _take_refused(con)}
    run(con, ingest_sql("parse/salvage", "drop_tried"))
    return [
        replace(span, text=None, reason="broken JSON: the engine cannot read it")
        if n in alone
        else span
        for n, span in enumerate(spans)
    ]


def _quarantine(con: duckdb.DuckDBPyConnection, reader: TraceReader | None) -> None:
    """Record the lost and repaired events of this batch with their offsets in the file."""
    offsets = reader.offsets if reader else []
    run(con, insert("quarantined", ingest_sql("quarantine", "flaws_of_batch")))
    run(con, ingest_sql("quarantine", "add_pending"), {"chunk_offsets": offsets})


def _refuse_rubble(con: duckdb.DuckDBPyConnection, reader: TraceReader) -> None:
    found = run(con, ingest_sql("quarantine", "too_many_broken"), {"limit": MAX_BROKEN}).fetchall()
    ((offset,),) = found
    if offset is not None:
        raise TraceFormatError(
            f"{reader.name}: {MAX_BROKEN} more broken events than valid ones up to byte {offset}; "
            "this is not a Kineto trace."
        )


def _quarantine_file_problems(con: duckdb.DuckDBPyConnection, reader: TraceReader | None) -> None:
    problems = reader.problems if reader else []
    _note(
        con, [(None, p.byte_offset, p.byte_count, p.is_lost, p.reason, p.excerpt) for p in problems]
    )


def _note(con: duckdb.DuckDBPyConnection, rows: list[tuple[object, ...]]) -> None:
    names = ("event_id", "byte_offset", "byte_count", "is_lost", "reason", "excerpt")
    for row in rows:
        run(con, ingest_sql("quarantine", "add_quarantined"), dict(zip(names, row, strict=True)))


def _refuse_flaws(con: duckdb.DuckDBPyConnection, reader: TraceReader | None) -> None:
    if reader:
        quarantine_pending(con, reader)
    first = run(con, ingest_sql("quarantine", "first_flaw")).fetchall()
    if first and reader:
        offset, reason, excerpt = first[0]
        raise TraceFormatError(
            f"{reader.name}: {reason}, at byte {offset}: {excerpt[:80]!r}. "
            "Without strict, the damaged part is quarantined and the rest is read."
        )
