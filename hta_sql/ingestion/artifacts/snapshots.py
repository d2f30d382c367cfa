"""Memory snapshots ─▶ staged tables. What their values mean is in sql/ingest/store/snapshot_*.sql."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa

from hta_sql.ingestion.artifacts.damage import quarantine_damage
from hta_sql.ingestion.artifacts.frames import FRAMES
from hta_sql.ingestion.statements import run
from hta_sql.library.sql_files import ingest_sql
from hta_sql.library.sqltext import create_table
from hta_sql.traces.memory_snapshot import SnapshotSink, Stack, Stacks, read_snapshot

log = logging.getLogger(__name__)

Record = dict[str, Any]
Row = tuple[Any, ...]

BATCH_ROWS = 20_000

_PLACED = [("address", pa.int64()), ("size", pa.int64()), ("stack_id", pa.int64())]
_SCHEMAS = {
    "snapshot_segments": pa.schema(
        [
            *(("segment_id", pa.int64()), *_PLACED, ("device", pa.int64()), ("stream", pa.int64())),
            *(
                (name, pa.int64())
                for name in ("allocated_size", "active_size", "requested_size", "block_count")
            ),
            *(("segment_type", pa.string()), ("pool", pa.string()), ("is_expandable", pa.bool_())),
        ]
    ),
    "snapshot_blocks": pa.schema(
        [
            *(("block_id", pa.int64()), ("segment_id", pa.int64()), *_PLACED),
            *(("requested_size", pa.int64()), ("state", pa.string())),
        ]
    ),
    "snapshot_events": pa.schema(
        [
            *(("event_id", pa.int64()), ("device", pa.int64()), *_PLACED, ("action", pa.string())),
            *((name, pa.int64()) for name in ("stream", "time_us", "device_free")),
            *(("compile_context", pa.string()), ("user_metadata", pa.string())),
        ]
    ),
    "snapshot_annotations": pa.schema(
        [
            *(("annotation_id", pa.int64()), ("device", pa.int64()), ("time_us", pa.int64())),
            *(("stage", pa.string()), ("name", pa.string())),
        ]
    ),
    "snapshot_frames": FRAMES,
}
SNAPSHOT_TABLES = tuple(_SCHEMAS)
"""The tables that only memory snapshots fill."""

_LIMIT = 1 << 63


def stage_snapshot(
    con: duckdb.DuckDBPyConnection, path: str | None
) -> tuple[Counter[str], dict[str, Any]]:
    """Read a memory snapshot into staged tables.

    Args:
        con: The database of the rank.
        path: The snapshot; None makes the tables without rows.

    Returns:
        Number of rows by table, and what the table ranks shows as metadata.

    Raises:
        TraceFormatError: It is no snapshot, is damaged, or has an opcode that builds more than plain values.
    """
    rows = _Rows(con)
    problem = None
    if path:
        stacks = Stacks()
        sink = SnapshotSink(rows.segments, rows.events, rows.annotations, stacks)
        rows.stacks = stacks
        problem = read_snapshot(path, sink)
        rows.frames()
    rows.flush()
    if problem:
        log.warning(
            "Memory snapshot %r is damaged: %s. What is whole of it was read.", path, problem
        )
        quarantine_damage(con, "Memory snapshot", problem)
        rows.counts["quarantine"] = 1
    return rows.counts, {"memory_snapshot": {"problem": problem}}


class _Rows:
    """Rows of the staged tables, written a batch at a time."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self.counts: Counter[str] = Counter()
        self.stacks = Stacks()
        self._con = con
        self._waiting: dict[str, list[Row]] = {table: [] for table in _SCHEMAS}
        for table, schema in _SCHEMAS.items():
            con.register("snapshot_rows", schema.empty_table())
            run(con, create_table(f"staged_{table}", "FROM snapshot_rows"))
            con.unregister("snapshot_rows")

    def segments(self, records: list[Record]) -> None:
        """Take segments with their blocks."""
        for record in records:
            get, number = record.get, self.counts["snapshot_segments"]
            blocks = get("blocks")
            blocks = [b for b in blocks if isinstance(b, dict)] if isinstance(blocks, list) else []
            pool = get("segment_pool_id")
            row = (
                *(number, _whole(get("address")), _whole(get("total_size")), self._stack(record)),
                *(_whole(get("device")), _whole(get("stream"))),
                *(_whole(get(f"{name}_size")) for name in ("allocated", "active", "requested")),
                *(len(blocks), _text(get("segment_type"))),
                ",".join(map(str, pool)) if isinstance(pool, (tuple, list)) else None,
                bool(get("is_expandable")),
            )
            self._add("snapshot_segments", row)
            self._blocks(number, _whole(get("address")), blocks)

    def _blocks(self, segment: int, address: int | None, blocks: list[Record]) -> None:
        for block in blocks:
            size = _whole(block.get("size"))
            history = block.get("history")
            oldest = history[0] if isinstance(history, list) and history else {}
            if not isinstance(oldest, dict):
                oldest = {}
            requested = block.get("requested_size", oldest.get("real_size", size))
            stack = self._stack(block if "frames" in block else oldest)
            # Blocks of early versions have no address: they follow each other.
            at = _whole(block.get("address"))
            at = address if at is None else at
            row = (self.counts["snapshot_blocks"], segment, at, size, stack, _whole(requested))
            self._add("snapshot_blocks", (*row, _text(block.get("state"))))
            address = at + size if at is not None and size is not None else None

    def events(self, device: int, records: list[Record]) -> None:
        """Take events of the allocator of a device."""
        rows = []
        for number, record in enumerate(records, self.counts["snapshot_events"]):
            get = record.get
            frames = get("frames")
            rows.append(
                (
                    number,
                    device,
                    _whole(get("addr")),
                    _whole(get("size")),
                    frames.number if type(frames) is Stack else self._stack(record),
                    _text(get("action")),
                    _whole(get("stream")),
                    _whole(get("time_us")),
                    _whole(get("device_free")),
                    _text(get("compile_context")),
                    _text(get("user_metadata")),
                )
            )
        self.counts["snapshot_events"] += len(rows)
        self._waiting["snapshot_events"] += rows
        if len(self._waiting["snapshot_events"]) >= BATCH_ROWS:
            self._write("snapshot_events")

    def annotations(self, records: list[Record]) -> None:
        """Take starts and ends of annotations."""
        for record in records:
            get = record.get
            row = (
                _whole(get("device")),
                _whole(get("time_us")),
                _text(get("stage")),
                _text(get("name")),
            )
            self._add("snapshot_annotations", (self.counts["snapshot_annotations"], *row))

    def frames(self) -> None:
        """Write the stacks that segments, blocks and events named."""
        for number, stack in enumerate(self.stacks.stacks):
            for depth, frame in enumerate(stack):
                self._add("snapshot_frames", (number, depth, *self.stacks.frames[frame]))

    def flush(self) -> None:
        """Write the rows that wait."""
        for table in _SCHEMAS:
            self._write(table)

    def _stack(self, record: Record) -> int | None:
        stack = self.stacks.of(record.get("frames"))
        return stack.number if stack else None

    def _add(self, table: str, row: Row) -> None:
        self.counts[table] += 1
        self._waiting[table].append(row)
        if len(self._waiting[table]) >= BATCH_ROWS:
            self._write(table)

    def _write(self, table: str) -> None:
        rows, self._waiting[table] = self._waiting[table], []
        if not rows:
            return
        schema = _SCHEMAS[table]
        columns = [
            pa.array(values, type_)
            for values, type_ in zip(zip(*rows, strict=True), schema.types, strict=True)
        ]
        self._con.register("snapshot_rows", pa.Table.from_arrays(columns, schema=schema))
        run(self._con, ingest_sql("link/artifact_rows", table))
        self._con.unregister("snapshot_rows")


def _whole(value: Any) -> int | None:
    return value if type(value) is int and -_LIMIT <= value < _LIMIT else None


def _text(value: Any) -> str | None:
    return value or None if isinstance(value, str) else None
