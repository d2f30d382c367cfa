"""Reads memory snapshots into staged tables.

The meaning of their values is defined in sql/ingest/store/snapshot_*.sql.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa

from hta_sql.ingestion.artifacts.damage import report_damage
from hta_sql.ingestion.artifacts.frames import FRAMES
from hta_sql.ingestion.artifacts.rows import StagedRows
from hta_sql.traces.memory_snapshot import SnapshotSink, Stack, Stacks, read_snapshot

Record = dict[str, Any]

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
EVENT_BYTES = 80
"""What an allocator event counts as, next to its texts [bytes]; a pickle has 200 bytes or more."""

FRAME_BYTES = 24
"""What a frame of a stack counts as, next to its texts [bytes]."""

SNAPSHOT_TABLES = tuple(_SCHEMAS)
"""The tables that only memory snapshots fill."""


def stage_snapshot(
    con: duckdb.DuckDBPyConnection, path: str | None
) -> tuple[Counter[str], dict[str, Any]]:
    """Read a memory snapshot into staged tables.

    Args:
        con: The database of the rank.
        path: Path of the snapshot; None creates the tables without rows.

    Returns:
        Number of rows by table, and the metadata for the table ranks.

    Raises:
        TraceFormatError: The file is not a snapshot, is damaged, or has a pickle opcode that builds
            more than plain values.
    """
    rows = _Rows(con, path)
    problem = None
    if path:
        stacks = Stacks()
        sink = SnapshotSink(rows.segments, rows.events, rows.annotations, stacks)
        rows.stacks = stacks
        problem = read_snapshot(path, sink)
        rows.frames()
    rows.flush()
    report_damage(con, rows.counts, "Memory snapshot", path, problem, odd=rows.values.problem)
    return rows.counts, {"memory_snapshot": {"problem": problem}}


class _Rows(StagedRows):
    """Rows of the staged tables of a memory snapshot."""

    def __init__(self, con: duckdb.DuckDBPyConnection, path: str | None) -> None:
        super().__init__(con, _SCHEMAS, path)
        self.stacks = Stacks()

    def segments(self, records: list[Record]) -> None:
        """Add segments and their blocks."""
        whole, text = self.values.whole, self.values.text
        for record in records:
            get, number = record.get, self.counts["snapshot_segments"]
            blocks = get("blocks")
            blocks = [b for b in blocks if isinstance(b, dict)] if isinstance(blocks, list) else []
            pool = get("segment_pool_id")
            row = (
                *(number, whole(get("address")), whole(get("total_size")), self._stack(record)),
                *(whole(get("device")), whole(get("stream"))),
                *(whole(get(f"{name}_size")) for name in ("allocated", "active", "requested")),
                *(len(blocks), text(get("segment_type"))),
                _pool_text(pool),
                bool(get("is_expandable")),
            )
            self.add("snapshot_segments", row)
            self._blocks(number, whole(get("address")), blocks)

    def _blocks(self, segment: int, address: int | None, blocks: list[Record]) -> None:
        whole, text = self.values.whole, self.values.text
        for block in blocks:
            size = whole(block.get("size"))
            history = block.get("history")
            oldest = history[0] if isinstance(history, list) and history else {}
            if not isinstance(oldest, dict):
                oldest = {}
            requested = block.get("requested_size", oldest.get("real_size", size))
            stack = self._stack(block if "frames" in block else oldest)
            # Blocks of early versions have no address; they are contiguous.
            at = whole(block.get("address"))
            at = address if at is None else at
            row = (self.counts["snapshot_blocks"], segment, at, size, stack, whole(requested))
            self.add("snapshot_blocks", (*row, text(block.get("state"))))
            address = at + size if at is not None and size is not None else None

    def events(self, device: int, records: list[Record]) -> None:
        """Add the allocator events of a device."""
        whole, text = self.values.whole, self.values.text
        if not self.values.takes(EVENT_BYTES * len(records)):
            return
        rows = []
        for number, record in enumerate(records, self.counts["snapshot_events"]):
            get = record.get
            frames = get("frames")
            rows.append(
                (
                    number,
                    device,
                    whole(get("addr")),
                    whole(get("size")),
                    frames.number if type(frames) is Stack else self._stack(record),
                    text(get("action")),
                    whole(get("stream")),
                    whole(get("time_us")),
                    whole(get("device_free")),
                    text(get("compile_context")),
                    text(get("user_metadata")),
                )
            )
        self.extend("snapshot_events", rows)

    def annotations(self, records: list[Record]) -> None:
        """Add the starts and ends of annotations."""
        whole, text = self.values.whole, self.values.text
        for record in records:
            get = record.get
            row = (
                whole(get("device")),
                whole(get("time_us")),
                text(get("stage")),
                text(get("name")),
            )
            self.add("snapshot_annotations", (self.counts["snapshot_annotations"], *row))

    def frames(self) -> None:
        """Add the frames of all stacks that segments, blocks and events reference."""
        text = self.values.text
        frames = [(text(name), text(file), line) for name, file, line in self.stacks.frames]
        sizes = [len(name or "") + len(file or "") + FRAME_BYTES for name, file, _ in frames]
        for number, stack in enumerate(self.stacks.stacks):
            if not self.values.takes(sum(sizes[frame] for frame in stack)):
                return
            for depth, frame in enumerate(stack):
                self.add("snapshot_frames", (number, depth, *frames[frame]))

    def _stack(self, record: Record) -> int | None:
        stack = self.stacks.of(record.get("frames"))
        return stack.number if stack else None


def _pool_text(pool: Any) -> str | None:
    """Return the two numbers of a memory pool, joined by a comma; None for other values."""
    is_pool = isinstance(pool, (tuple, list)) and len(pool) == 2
    if not is_pool or any(type(part) is not int or abs(part) >> 64 for part in pool):
        return None
    return ",".join(map(str, pool))
