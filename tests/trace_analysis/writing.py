"""Helpers that write small traces with a few kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def kernel(ts: float, dur: float, **more: Any) -> dict[str, Any]:
    """Return a kernel event on stream 7 [µs]."""
    args = {"stream": 7, "device": 0}
    return {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": ts, "dur": dur} | {
        "name": "gemm",
        "args": args,
        **more,
    }


def write_trace(folder: Path, name: str, events: list[dict[str, Any]], rank: int = 0) -> Path:
    """Write a trace that states its rank; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    trace = {"distributedInfo": {"rank": rank}, "traceEvents": events}
    path.write_text(json.dumps(trace), encoding="utf-8")
    return path
