"""Launching operators and their categories match TraceLens on two public jobs."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from hta_sql import TraceStore
from tests.parity.jobs import SHARED

SUMMARIES = SHARED / "expected" / "tracelens"

JOBS = {
    # Times in this file are small, so its floats are exact.
    "hta_nccl_parser_config": 0.0,
    # Microseconds since 1970 are rounded to a quarter of a microsecond as floats.
    "hta_ns_resolution": 0.25,
}
"""Job ─▶ tolerance of TraceLens's time for each kernel [us]."""

CATEGORIES: dict[str, str | dict[str, str]] = {
    "convolution": {"forward": "CONV_fwd", "backward": "CONV_bwd"},
    "norm": {"forward": "NORM_fwd", "backward": "NORM_bwd"},
    "elementwise": "elementwise",
    "copy": "elementwise",
    "multi_tensor": "multi_tensor_apply",
    "gemm": "GEMM",
    "reduce": "reduce",
    # TraceLens has no category for these.
    "pooling": "other",
    "softmax": "other",
}
"""Our category, by phase if it matters ─▶ TraceLens's category.

TraceLens counts the copy operator aten::cat as other.
"""

ROUNDED = {"torch::distributed::reducer::mul_out": -1, "aten::mul": 1}
"""Operator ─▶ calls by which TraceLens differs in the second job.

An aten::mul ends 144 ns before its caller, but its rounded end is outside the caller.
"""


@pytest.mark.parametrize("job", JOBS)
def test_launching_operators_are_those_of_tracelens(job: str, jobs_store: TraceStore) -> None:
    """Operators, calls, device time and categories match; TraceLens does not count collectives."""
    result = jobs_store.run("launching_operators", runs=[job], include_last_profiler_step=True)
    ours: dict[str, list[dict[str, Any]]] = {}
    for row in result.arrow().to_pylist():
        if row["category"] != "communication":
            ours.setdefault(row["name"], []).append(row)
    text = (SUMMARIES / f"{job}_ops_summary.csv").read_text(encoding="utf-8")
    theirs = {row["name"]: row for row in csv.DictReader(text.splitlines())}
    differ = ROUNDED if job == "hta_ns_resolution" else {}
    assert ours.keys() | differ.keys() == theirs.keys() | differ.keys()
    for name, row in theirs.items():
        own = ours.get(name, [])
        more = differ.get(name, 0)
        assert sum(part["call_count"] for part in own) == int(row["Count"]) + more, name
        kernels = sum(part["kernel_count"] for part in own)
        time = sum(part["device_ns"] for part in own) / 1000
        off = abs(time - float(row["total_direct_kernel_time_sum"]))
        assert off <= 0.5 + JOBS[job] * kernels + 2 * abs(more), name
        assert {f"['{category_of(part)}']" for part in own} <= {row["Categories"]}, name


def category_of(row: dict[str, Any]) -> str:
    """Return TraceLens's category for a row."""
    if row["name"] == "aten::cat":
        return "other"
    name = CATEGORIES[row["category"]]
    return name if isinstance(name, str) else name[row["phase"]]
