"""Memory in PyTorch's own captures equals the TensorBoard plugin's and PyTorch's figures."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from hta_sql import TraceStore
from tests.parity.test_key_averages import CAPTURES, EXPECTED, ingest_cases
from tests.shared_stores import made_once

PLUGIN = EXPECTED.parent / "tb_plugin"

pytestmark = pytest.mark.skipif(not CAPTURES, reason="torch's traces are not beside the repository")

CASES = [("ddp_gloo_2", "ddp_gloo_2_rank0"), ("tinygpt_sched_all_span0", "tinygpt_sched_all_span0")]
"""Our run and the plugin's file name."""

LOST = {
    "aten::_log_softmax_backward_data",
    "aten::nll_loss_backward",
    "LogSoftmaxBackward0",
    "NllLossBackward0",
    "autograd::engine::evaluate_function: LogSoftmaxBackward0",
    "autograd::engine::evaluate_function: NllLossBackward0",
}
"""Operators at the start of the backward pass that the plugin's trees lack."""

MISCOUNTED = {
    "aten::reshape",
    "ViewBackward0",
    "autograd::engine::evaluate_function: ViewBackward0",
}
"""Operators for which the plugin lost calls: its operator list and memory view disagree."""

NUMBERS = ("increase_bytes", "allocated_bytes", "allocation_count")

CATEGORIES = (
    *("parameter", "optimizer state", "input", "temporary", "activation", "gradient"),
    *("autograd", "unknown"),
)
"""PyTorch's categories, by number."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest all captures into one store."""
    with TraceStore(made_once(tmp_path_factory, "key_averages", ingest_cases)) as opened:
        yield opened


def plugin(file: str) -> dict[str, Any]:
    """Return the plugin's results."""
    answer: dict[str, Any] = json.loads((PLUGIN / f"{file}.json").read_text(encoding="utf-8"))
    return answer


@pytest.mark.parametrize(("run", "file"), CASES)
def test_the_peak_is_that_of_the_plugin(run: str, file: str, store: TraceStore) -> None:
    """The peak of the host memory equals the plugin's."""
    (theirs,) = plugin(file)["peaks"].values()
    (peak,) = store.run("memory_peaks", runs=[run], ranks=[0]).arrow().to_pylist()
    assert (peak["device_type"], peak["peak_allocated_bytes"]) == (0, theirs)


@pytest.mark.parametrize(("run", "file"), CASES)
def test_what_operators_allocate_is_what_the_plugin_says(
    run: str, file: str, store: TraceStore
) -> None:
    """Bytes and allocations of each operator equal the plugin's, and so do most call counts."""
    options: dict[str, Any] = {"runs": [run], "ranks": [0], "include_last_profiler_step": True}
    rows = store.run("memory_by_operator", **options).arrow().to_pylist()
    ours = {row["operator_name"]: row for row in rows if row["operator_name"]}
    told = plugin(file)
    theirs = told["memory_stats"]["CPU"]
    assert set(ours) - set(theirs) == LOST
    for name, (*numbers, calls) in theirs.items():
        row = ours[name]
        assert [row[f"self_{of}"] for of in NUMBERS] + [row[of] for of in NUMBERS] == numbers, name
        assert (row["call_count"] == calls) is (name not in MISCOUNTED), name
    listed = {row["name"]: row["calls"] for row in told["op_table"]["data"]}
    assert not LOST & set(listed)
    assert all(theirs[name][-1] != listed[name] for name in ("aten::reshape", "ViewBackward0"))


def test_categories_at_the_peak_are_those_of_torch(store: TraceStore) -> None:
    """Memory at the peak has PyTorch's categories, except for 8 bytes that only PyTorch classifies.

    PyTorch follows tensors, while we follow the enclosing operators.
    """
    case = "convnet_memtimeline"
    raw = json.loads(
        gzip.decompress((EXPECTED / case / "memory_timeline.raw.json.gz").read_bytes())
    )
    in_use: Counter[str] = Counter()
    at_peak = Counter(in_use)
    for _, _, size, category in raw:
        in_use[CATEGORIES[category]] += size
        if in_use.total() > at_peak.total():
            at_peak = Counter(in_use)
    found: Counter[str] = Counter()
    rows = store.run("live_at_peak", runs=[case]).arrow().to_pylist()
    for row in rows:
        found[row["category"] or row["state"]] += row["bytes"]
    assert found["autograd"] == at_peak["autograd"] == 754_688
    assert found["gradient"] == at_peak["gradient"] == 10_664
    assert (found["activation"], found["freed later"]) == (1_049_024, 8)
    assert found["activation"] + found["freed later"] == at_peak["activation"]
    # Operator workspace is no tensor, so PyTorch calls half of it unknown. 8 bytes are older.
    assert found["temporary"] == at_peak["temporary"] + at_peak["unknown"] - 8
