"""Ingests ranks: chunks ─▶ staged events ─▶ links ─▶ Parquet, in an in-memory DuckDB.

One rank or several small ones go the same way: planning the statements costs 100 ms, regardless of
the number and size of ranks. :func:`ingest_rank` and :func:`ingest_ranks` are tasks for any
Executor: their input is RankJobs, their results are small, and running them twice is harmless. The
definitions are in sql/ingest; this module only moves bytes and names.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import duckdb
import pyarrow as pa

from hta_sql.errors import TraceError
from hta_sql.exhausted import is_out_of_memory
from hta_sql.ingestion.artifacts.compiled_kernels import stage_compiled_kernels
from hta_sql.ingestion.artifacts.dumps import place_dump
from hta_sql.ingestion.artifacts.limited import is_large, limit_time, most_memory, out_of_memory
from hta_sql.ingestion.artifacts.reading import stage_artifact
from hta_sql.ingestion.fingerprints import ChangedWhileReadError, unchanged
from hta_sql.ingestion.linking import link_events
from hta_sql.ingestion.rank_job import RankJob, RankResult, ReadTrace, job_row
from hta_sql.ingestion.running.solo import run_alone
from hta_sql.ingestion.staging import DoubtfulCutError, stage_events
from hta_sql.ingestion.statements import run
from hta_sql.ingestion.tables import RankOutput, StoredFile, rows_of, write_tables
from hta_sql.ingestion.trace_batch import TraceBatch
from hta_sql.ingestion.vendors.mindspore import cluster_file, stage_cluster_data
from hta_sql.library.engine_settings import hide_progress
from hta_sql.library.sql_files import ingest_sql, query_sql
from hta_sql.library.sqltext import create_table
from hta_sql.machine import size_of, temporary_folder
from hta_sql.store.catalog.rank_scope import DESCRIBING, facts_of
from hta_sql.store.catalog.shared_engine import scratch
from hta_sql.store.disk.manifest import Fingerprint
from hta_sql.store.disk.spans import ARTIFACTS, DUMP_SPAN
from hta_sql.traces.chunks import TraceReader
from hta_sql.traces.names import path_text
from hta_sql.traces.source import open_trace

log = logging.getLogger(__name__)

SPAN_BITS = 32
"""Event ids of span n start at n * 2**SPAN_BITS: no file has that many events."""

MAX_READS = 3
"""Maximum number of attempts to read a file that changes meanwhile."""

NEVER = "1024TiB"
"""A checkpoint threshold that an in-memory database never reaches."""

MOST_HELD = 256 << 20
"""Maximum size of columns that are not copied into the engine [bytes]: those of 0.5 GB of text.

It is also limited to the memory limit divided by :data:`HELD_SHARE`.
"""

HELD_SHARE = 16
"""Divisor of the memory limit, which covers only the engine; see :data:`MOST_HELD`."""

ROW_BYTES = 512
"""Memory of a staged row with its links in the engine [bytes]; 14 million rows spill in 4 GiB."""


Outcome = RankResult | Exception


def ingest_rank(job: RankJob) -> RankResult:
    """Read one trace and write its tables; they are invisible until a manifest references them.

    Raises:
        TraceError: The trace cannot be read, or changed during every attempt.
    """
    if job.span in ARTIFACTS and is_large(job.path, job.size):
        most_bytes = most_memory(job.path, job.size, job.memory_limit)
        try:
            return run_alone(_ingest_limited, job, job.path, most_bytes)
        except MemoryError as error:
            raise out_of_memory(job.path, job.memory_limit) from error
    return _ingest_repeatedly(job)


def ingest_ranks(jobs: Sequence[RankJob]) -> list[Outcome]:
    """Read traces together, with the same result as :func:`ingest_rank` for each.

    A trace that has a flaw, changes or cannot be read is read again alone.

    Returns:
        The outcome of each job, in order: a result or an error.
    """
    done: dict[int, RankResult] = {}
    if len(jobs) > 1 and not any(job.span in ARTIFACTS for job in jobs):
        try:
            done = _ingest(jobs, careful=False)
        except Exception as error:  # noqa: BLE001 - one trace must not affect the others
            log.info("%d traces are read separately: %r", len(jobs), error)
    return [done.get(part) or _outcome(job) for part, job in enumerate(jobs)]


def _outcome(job: RankJob) -> Outcome:
    try:
        return ingest_rank(job)
    except Exception as error:  # noqa: BLE001 - the outcome of this trace; others continue
        return error


def _ingest_limited(job: RankJob) -> RankResult:
    """Read a file that is not a trace, in a process that may die."""
    limit_time(job.path, job.size)
    try:
        return _ingest_repeatedly(job)
    except Exception as error:
        if isinstance(error, duckdb.OutOfMemoryException) or is_out_of_memory(error):
            raise out_of_memory(job.path, job.memory_limit) from error
        raise


def _ingest_repeatedly(job: RankJob) -> RankResult:
    careful = False
    for _ in range(MAX_READS):
        try:
            if job.span in ARTIFACTS:
                return _ingest_artifact(job)
            return _ingest([job], careful=careful)[0]
        except DoubtfulCutError:
            log.info("%s does not parse at a chunk boundary; reading it event by event.", job.path)
            careful = True
        except ChangedWhileReadError:
            log.warning("%s changed while it was being read; reading it again.", job.path)
    raise TraceError(
        f"{job.path!r} changed during each of {MAX_READS} reads: another process is writing to "
        "the file. Ingest the trace again when that process has finished."
    )


def _ingest(jobs: Sequence[RankJob], *, careful: bool) -> dict[int, RankResult]:
    """Read traces and write their tables; return the results by number of the job.

    Of several traces, those with an error or a flaw have no result.
    """
    started = time.monotonic()
    with _database(jobs[0]) as con:
        traces, rows = _staged(con, jobs, careful=careful)
        results = stored(con, traces, rows, started) if traces else []
    return {trace.part: result for trace, result in zip(traces, results, strict=True)}


def _ingest_artifact(job: RankJob) -> RankResult:
    """Read a file that is not a trace, and write its tables without the statements about events."""
    started = time.monotonic()
    # A dump is small; snapshots and execution traces need an engine with separate limits.
    with scratch() if job.span == DUMP_SPAN else _database(job) as con:
        with unchanged(job.path) as fingerprint:
            rows, metadata = stage_artifact(con, ARTIFACTS[job.span], job.path)
        place_dump(con, job_row(ReadTrace(job, fingerprint, metadata)))
        files = write_tables(con, [_place_of(job)], rows)
        facts = dict(facts_of(con))[job.run, job.rank]
    seconds = time.monotonic() - started
    return RankResult(job, fingerprint, files, 0, rows["quarantine"], None, seconds, facts=facts)


def stored(
    con: duckdb.DuckDBPyConnection,
    traces: Sequence[ReadTrace],
    rows: Counter[str],
    started: float,
) -> list[RankResult]:
    """Link the staged events and write the tables.

    Args:
        con: The database with the staged tables.
        traces: The staged traces.
        rows: Number of rows by staged table; the rows of linked tables are counted here.
        started: Start of reading, by the monotonic clock [s].
    """
    first = traces[0].job
    link_events(con, [job_row(trace) for trace in traces], first.kernel_classes)
    matched = _match_captures(con, traces)
    places = [_place_of(trace.job) for trace in traces]
    files: dict[tuple[str, int], list[StoredFile]] = defaultdict(list)
    rows = rows + Counter(dict(run(con, ingest_sql("staged", "row_counts")).fetchall()))
    rows["graph_matches"] = matched
    described = {trace.part: trace.job.kernel_files for trace in traces}
    rows["compiled_kernels"] = stage_compiled_kernels(con, described)
    for table in DESCRIBING:
        run(con, create_table(f"described_{table}", rows_of(table)))
    at_once = first.threads if _fits(first, rows) else 1
    for file in write_tables(con, places, rows, at_once):
        files[file.run, file.rank].append(file)
    steps: dict[int, list[str]] = defaultdict(list)
    for part, name in run(con, query_sql("ingest", "steps")).fetchall():
        steps[part].append(name)
    frames = run(con, query_sql("ingest", "clocks")).fetchall()
    clocks = {part: clock for part, *clock in frames}
    facts = dict(facts_of(con))
    seconds = time.monotonic() - started
    results = []
    for trace in traces:
        rank = trace.job.run, trace.job.rank
        start_ns, has_base_time = clocks[trace.part]
        results.append(
            RankResult(
                job=trace.job,
                fingerprint=trace.fingerprint,
                files=files[rank],
                event_count=trace.event_count,
                quarantined=sum(f.rows for f in files[rank] if f.table == "quarantine"),
                start_ns=start_ns,
                seconds=seconds,
                steps=steps[trace.part],
                has_base_time=has_base_time,
                facts=facts[rank],
            )
        )
    return results


def _place_of(job: RankJob) -> RankOutput:
    return RankOutput(job.tables, job.run, job.rank, job.span, job.writer)


def _fits(job: RankJob, rows: Counter[str]) -> bool:
    """Return whether the rows fit in memory, so that writing tables in parallel does not spill."""
    return not job.memory_limit or rows.total() * ROW_BYTES < size_of(job.memory_limit)


def _staged(
    con: duckdb.DuckDBPyConnection, jobs: Sequence[RankJob], *, careful: bool
) -> tuple[list[ReadTrace], Counter[str]]:
    """Read the events of traces.

    Returns:
        The traces that were read, and the number of rows by table.
    """
    first = jobs[0]
    if len(jobs) == 1 and cluster_file(first.path):
        with unchanged(first.path) as fingerprint:
            stage_events(con, TraceBatch([], [0]))  # empty tables
            rows, metadata = stage_cluster_data(con, first.path)
        return [ReadTrace(first, fingerprint, metadata)], rows
    found: dict[int, Fingerprint] = {}
    if len(jobs) == 1:
        sources = [_opened(first, careful=careful)]
    else:
        sources = [_opened_unchanged(part, job, found) for part, job in enumerate(jobs)]
    batch = TraceBatch(sources, [job.span << SPAN_BITS for job in jobs])
    # Errors of a single trace may arise after it was read to its end.
    with unchanged(first.path) if batch.is_alone else nullcontext() as of_single:
        rows = stage_events(
            con,
            batch,
            strict=first.strict and batch.is_alone,
            threads=first.threads,
            most_held=most_held(first),
        )
    if of_single:
        found[0] = of_single
    traces = [
        ReadTrace(
            job=jobs[part],
            fingerprint=found[part],
            metadata=reader.metadata,
            event_count=batch.event_count(part),
            text_bytes=reader.bytes_read,
            part=part,
        )
        for part, reader in batch.readers.items()
        if part not in batch.left_out
    ]
    return traces, rows


@contextmanager
def _opened(job: RankJob, *, careful: bool) -> Iterator[TraceReader]:
    """Open a trace for reading."""
    reader = TraceReader(open_trace(job.path), job.path, job.chunk_bytes, careful=careful)
    with reader.stream:
        yield reader


@contextmanager
def _opened_unchanged(
    part: int, job: RankJob, found: dict[int, Fingerprint]
) -> Iterator[TraceReader]:
    """Open a trace, add its fingerprint, and check at the end that it did not change."""
    with unchanged(job.path) as found[part], _opened(job, careful=False) as reader:
        yield reader


def most_held(job: RankJob) -> int:
    """Return the maximum memory of a rank's events outside of the engine [bytes]."""
    return min(MOST_HELD, size_of(job.memory_limit) // HELD_SHARE) if job.memory_limit else 0


@contextmanager
def _database(job: RankJob) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty in-memory database, which spills to its own temporary folder.

    By default, the engine spills into ``.tmp`` in the current folder. It also checkpoints in-memory
    databases, which costs a fifth of ingesting a 500 MB trace. No table is TEMP, because TEMP
    tables are visible to only one connection, and statements run on several in parallel.
    """
    if job.is_small:
        with scratch() as con:
            yield con
        return
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": job.threads,
        "checkpoint_threshold": NEVER,
    }
    if job.memory_limit:
        config["memory_limit"] = job.memory_limit
    with (
        temporary_folder() as spill,
        duckdb.connect(":memory:", config={**config, "temp_directory": spill}) as con,
    ):
        hide_progress(con)
        yield con


def _match_captures(con: duckdb.DuckDBPyConnection, traces: Sequence[ReadTrace]) -> int:
    """Match graph replays with their captures; return the number of matched operations."""
    paths = {path for trace in traces for path in trace.job.captures}
    if not paths:
        return 0
    from hta_sql.ingestion.graph_matching import match_graphs  # noqa: PLC0415 - few traces need it

    read = {path: _captured_launches(path, traces[0].job) for path in sorted(paths)}
    captures = {trace.part: [read[path] for path in trace.job.captures] for trace in traces}
    return match_graphs(con, captures)


def _captured_launches(path: str, replay: RankJob) -> pa.Table:
    """Read the launches of a graph capture in a separate engine."""
    from hta_sql.ingestion.graph_matching import CAPTURED_SCHEMA  # noqa: PLC0415

    job = replace(replay, path=path, span=0, is_small=False)
    with _database(job) as con:
        traces, _ = _staged(con, [job], careful=False)
        link_events(con, [job_row(trace) for trace in traces])
        launches = con.sql(ingest_sql("link/graph_captures", "captured_launches")).to_arrow_table()
    source = pa.array([path_text(path)] * launches.num_rows, pa.string())
    return launches.add_column(0, "source", source).cast(CAPTURED_SCHEMA)
