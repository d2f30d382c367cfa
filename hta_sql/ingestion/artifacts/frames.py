"""Columns of call stack frames, which are the same in dumps and in memory snapshots."""

from __future__ import annotations

import pyarrow as pa

FRAMES = pa.schema(
    [
        *(("stack_id", pa.int64()), ("depth", pa.int32())),
        *(("name", pa.string()), ("file", pa.string()), ("line", pa.int64())),
    ]
)
"""One row per frame of each distinct stack; depth 0 is the innermost frame."""
