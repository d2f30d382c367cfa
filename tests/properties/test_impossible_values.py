"""Impossible rates of copies affect no other values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from hta_sql.store.query.trace_store import TraceStore


def copy(ts: float, bandwidth: float, size: int) -> dict[str, Any]:
    """Return a memory copy of 1 µs."""
    args = {"bytes": size, "memory bandwidth (GB/s)": bandwidth}
    event = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7}
    return event | {"ts": ts, "dur": 1, "args": args}


@pytest.mark.parametrize("name", ["memory_bandwidth_series", "memory_bandwidth_summary"])
def test_rates_beyond_64_bits_are_unknown(
    ingest_trace: Callable[..., TraceStore], name: str
) -> None:
    """The rate of an impossible copy is unknown, and the other copies keep theirs."""
    impossible = [copy(5, 1e300, 2**62), copy(9, 9e9, 1000), copy(9, 9e9, 1000)]
    rows = ingest_trace([copy(0, 2.5, 1000), *impossible]).run(name).arrow().to_pylist()
    if name == "memory_bandwidth_series":
        assert [r["bandwidth_gbps"] for r in rows] == [2.5, 0, None, 0, None, 0]
        assert [r["computed_gbps"] for r in rows] == [1, 0, None, 0, 2, 0]
    else:
        assert [(r["copy_count"], r["point_count"], r["max_gbps"]) for r in rows] == [(4, 1, 2.5)]
