"""Ingests small traces together, with one set of statements for all of them.

Planning the statements of a rank costs 100 ms, regardless of its size. A trace is ingested
separately if it has events to rescue or quarantine, changes while it is read, or cannot be read.
Therefore the statements here process only valid events, and the tables are the same as if each
trace were ingested separately.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain

import duckdb
import pyarrow as pa

from hta_sql.errors import HtaSqlError
from hta_sql.ingestion.call_tree import PART_BITS
from hta_sql.ingestion.fingerprints import ChangedWhileReadError, unchanged
from hta_sql.ingestion.native import NativeBatch, native_batch
from hta_sql.ingestion.rank import SPAN_BITS, RankJob, RankResult, ReadTrace, ingest_rank, stored
from hta_sql.ingestion.staged_tables import Staged, number
from hta_sql.ingestion.staging import arrow, parse, prepare
from hta_sql.ingestion.statements import run
from hta_sql.ingestion.vendors.ascend import is_ascend
from hta_sql.library.sql_files import ingest_sql
from hta_sql.library.sqltext import create_table
from hta_sql.store.catalog.shared_engine import scratch
from hta_sql.store.disk.spans import ARTIFACTS
from hta_sql.traces.chunks import Chunk, TraceReader
from hta_sql.traces.source import open_trace

log = logging.getLogger(__name__)

MAX_TEXT_BYTES = 160 << 20
"""Maximum text of traces that are read together [bytes]; further traces are read separately."""

Outcome = RankResult | Exception


class NotPlainError(Exception):
    """A trace was written by a profiler whose events are moved to other tables after reading."""


def ingest_together(jobs: Sequence[RankJob]) -> list[Outcome]:
    """Read traces and write their tables, with the same result as :func:`ingest_rank` for each.

    Returns:
        The outcome of each job, in order: a result or an error.
    """
    done: dict[int, RankResult] = {}
    if len(jobs) > 1 and not any(job.span in ARTIFACTS for job in jobs):
        try:
            done = _together(jobs)
        except Exception as error:  # noqa: BLE001 - one trace must not affect the others
            log.info("%d traces are read separately: %r", len(jobs), error)
    return [done.get(part) or _alone(job) for part, job in enumerate(jobs)]


def _alone(job: RankJob) -> Outcome:
    try:
        return ingest_rank(job)
    except Exception as error:  # noqa: BLE001 - the outcome of this trace; others continue
        return error


@dataclass
class _Reading:
    """The traces of a batch while they are read, by their number in the batch."""

    jobs: Sequence[RankJob]
    traces: dict[int, ReadTrace] = field(default_factory=dict)
    natives: dict[int, NativeBatch] = field(default_factory=dict)
    """Batches of the compiled reader."""
    text_bytes: int = 0

    def chunks(self) -> Iterator[pa.RecordBatch]:
        """Yield the chunks that remain to be parsed.

        A trace that cannot be read to its end is not added to ``traces``.
        """
        for part, job in enumerate(self.jobs):
            try:
                yield from self._chunks(part, job)
            except (HtaSqlError, ChangedWhileReadError, OSError) as error:
                log.info("%s is read separately: %s", job.path, error)

    def _chunks(self, part: int, job: RankJob) -> Iterator[pa.RecordBatch]:
        if self.text_bytes > MAX_TEXT_BYTES:
            return
        native = native_batch()
        with unchanged(job.path) as fingerprint:
            reader = TraceReader(open_trace(job.path), job.path, job.chunk_bytes)
            with reader.stream:
                chunks = self._counted(reader)
                for chunk in native.left(chunks, part) if native else chunks:
                    yield arrow(chunk, part=part)
        if reader.is_done and not reader.problems:
            self.traces[part] = ReadTrace(
                job, fingerprint, reader.metadata, text_bytes=reader.bytes_read, part=part
            )
            if native:
                self.natives[part] = native

    def _counted(self, reader: TraceReader) -> Iterator[Chunk]:
        for chunk in reader:
            self.text_bytes += len(chunk.text)
            if self.text_bytes > MAX_TEXT_BYTES:
                return
            yield chunk


def _together(jobs: Sequence[RankJob]) -> dict[int, RankResult]:
    """Read all traces that need no separate ingest; return the results by job number."""
    started = time.monotonic()
    with scratch() as con:
        prepare(con)
        reading = _Reading(jobs)
        left = reading.chunks()
        refused = next(left, None)
        parsed: dict[int, Counter[str]] = {}
        odd: set[int] = set()
        if refused:
            parse(con, chain([refused], left), create_table)
            parsed = _counts(con)
            odd = _odd(con, reading, parsed)
            if odd:
                run(con, ingest_sql("parse/batch", "drop_traces"), {"parts": sorted(odd)})
        natives = {part: native for part, native in reading.natives.items() if part not in odd}
        counts = {part: native.counts() for part, native in natives.items()}
        for part in parsed.keys() - odd:
            counts[part] = counts.get(part, Counter()) + parsed[part]
        traces = [
            replace(trace, event_count=counts[part].total())
            for part, trace in reading.traces.items()
            if part not in odd
        ]
        if not traces:
            return {}
        _stage(con, jobs, natives, {part: parsed[part] for part in parsed.keys() - odd})
        events: Counter[str] = sum((counts[trace.part] for trace in traces), Counter())
        results = stored(con, traces, events, started)
    return {trace.part: result for trace, result in zip(traces, results, strict=True)}


def _stage(
    con: duckdb.DuckDBPyConnection,
    jobs: Sequence[RankJob],
    natives: Mapping[int, NativeBatch],
    parsed: Mapping[int, Counter[str]],
) -> None:
    """Insert the events that were read or parsed into the staged tables."""
    firsts = [(part << PART_BITS) + (job.span << SPAN_BITS) for part, job in enumerate(jobs)]
    read = dict(chain.from_iterable(native.events.items() for native in natives.values()))
    is_parsed = bool(parsed)
    starts = number(con, firsts, read, is_parsed=is_parsed)
    with closing(Staged(con, jobs[0].threads, MAX_TEXT_BYTES)) as staged:
        if natives:
            staged.add(natives.values(), starts)
        if is_parsed:
            staged.extract(sum(parsed.values(), Counter()))
            run(con, "DROP TABLE parsed_events")
        staged.show()
    if is_ascend(con):
        raise NotPlainError


def _odd(
    con: duckdb.DuckDBPyConnection, reading: _Reading, counts: dict[int, Counter[str]]
) -> set[int]:
    """Return the numbers of the traces that must be ingested separately."""
    odd = {
        part for (part,) in run(con, ingest_sql("ascend/producer", "parsed_by_ascend")).fetchall()
    }
    return odd | {
        part
        for part, tables in counts.items()
        if part not in reading.traces or tables.keys() & {"refused", "quarantine"}
    }


def _counts(con: duckdb.DuckDBPyConnection) -> dict[int, Counter[str]]:
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for part, table, count in run(con, ingest_sql("parse/batch", "event_counts")).fetchall():
        counts[part][table] = count
    return counts
