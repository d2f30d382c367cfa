"""Determines the offsets and excerpts of quarantined events in their trace file.

The engine parses whole chunks and does not report the offset of an event. Only traces with
quarantined events pay for the offsets: such a trace is read again, and the affected chunks are
walked event by event.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import suppress

import duckdb
import pyarrow as pa

from hta_sql.errors import TraceError
from hta_sql.ingestion.statements import run
from hta_sql.library.sql_files import ingest_sql
from hta_sql.traces.chunks import Chunk, TraceReader
from hta_sql.traces.salvage import EXCERPT_BYTES, walk
from hta_sql.traces.source import open_trace

_SCHEMA = pa.schema(
    [
        ("chunk", pa.int64()),
        ("position", pa.int64()),
        ("byte_offset", pa.int64()),
        ("byte_count", pa.int64()),
        ("excerpt", pa.string()),
    ]
)


def quarantine_pending(con: duckdb.DuckDBPyConnection, reader: TraceReader) -> None:
    """Quarantine the pending events, each with its own offset and excerpt.

    If the file no longer exists, an event gets the offset of its chunk.
    """
    wanted = {chunk for (chunk,) in run(con, ingest_sql("quarantine", "pending_chunks")).fetchall()}
    if not wanted:
        return
    run(con, ingest_sql("quarantine", "offsets"))
    with suppress(TraceError), open_trace(reader.name) as stream:
        batches = _batches(reader.again(stream), wanted)
        con.register("offsets_found", pa.RecordBatchReader.from_batches(_SCHEMA, batches))
        run(con, ingest_sql("quarantine", "add_offsets"))
        con.unregister("offsets_found")
    run(con, ingest_sql("quarantine", "quarantine_pending"))


def _batches(reader: TraceReader, wanted: set[int]) -> Iterator[pa.RecordBatch]:
    last = max(wanted)
    for chunk in reader:
        if chunk.number in wanted:
            yield _places(chunk)
        if chunk.number == last:
            return


def _places(chunk: Chunk) -> pa.RecordBatch:
    """Return offset, size and excerpt of each event in a chunk.

    Avoids pa.array(), which imports pandas.
    """
    starts, counts, ends = array("q"), array("q"), array("i", [0])
    excerpts = bytearray()
    for span in walk(chunk.text):
        source = chunk.text[span.start : span.end].rstrip(b", \t\r\n")
        starts.append(chunk.byte_offset + span.start)
        counts.append(len(source))
        excerpts += source[:EXCERPT_BYTES].decode("utf-8", errors="replace").encode()
        ends.append(len(excerpts))
    rows = len(starts)
    numbers = [array("q", [chunk.number]) * rows, array("q", range(rows)), starts, counts]
    buffers = [pa.py_buffer(ends), pa.py_buffer(bytes(excerpts))]
    arrays = [
        *(pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(n)]) for n in numbers),
        pa.Array.from_buffers(pa.string(), rows, [None, *buffers]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
