"""TraceDiff on two public traces has the numbers of HTA's own tests.

test_hta.py compares every cell.
"""

from __future__ import annotations

import pytest

from hta_sql import TraceDiff, TraceStore
from hta_sql.hta.trace_diff import DeviceType
from tests.parity.jobs import HTA
from tests.parity.pairs import labeled

pytestmark = pytest.mark.skipif(not HTA.is_dir(), reason="HTA's numbers are not here")


IN_THE_ITERATION = (1, 1, 1010, 1010)
"""Rank and iteration of the control and the test."""


def test_a31_ranks_iterations_and_events(jobs_store: TraceStore) -> None:
    """Rank 1 has two iterations."""
    base, test = labeled(jobs_store, "pair_trace_compare")
    for side in (base, test):
        assert side.ranks() == [1]
        assert side.iterations() == [1009, 1010]


def test_a32_summary_of_operators(jobs_store: TraceStore) -> None:
    """Six host events and one device event have the expected counts and durations."""
    base, _ = labeled(jobs_store, "pair_trace_compare")
    found = {
        side: TraceDiff.compare_traces(base, base, 1, 1, 1010, 1010, side)
        for side in (DeviceType.CPU, DeviceType.GPU)
    }
    counts = found[DeviceType.GPU][f"{base.label}_counts"]
    assert counts.tolist() == [1]
    columns = [f"{base.label}_counts", f"{base.label}_total_duration"]
    rows = found[DeviceType.CPU][columns].itertuples(name=None)
    assert sorted(rows) == [
        ("ProfilerStep#1010", 1, 122149),
        ("aten::as_strided", 1, 0),
        ("aten::empty", 1, 0),
        ("cudaEventQuery", 1, 4),
        ("cudaLaunchKernel", 1, 4),
        ("nccl:all_reduce", 1, 67),
    ]


def test_a33_changes_of_counts(jobs_store: TraceStore) -> None:
    """Five host operators are as frequent as before, three more frequent, and one less frequent.

    On the device, one operator is less frequent.
    """
    chosen = (*labeled(jobs_store, "pair_trace_compare"), *IN_THE_ITERATION)
    host = TraceDiff.compare_traces(*chosen, DeviceType.CPU, use_short_name=True)
    assert host["counts_change_categories"].value_counts().to_dict() == {"=": 5, "+": 3, "-": 1}
    device = TraceDiff.compare_traces(*chosen, DeviceType.GPU, use_short_name=True)
    assert list(device["counts_change_categories"]) == ["-"]


def test_a34_operators_that_came_and_went(jobs_store: TraceStore) -> None:
    """The expected operators are added and deleted."""
    chosen = (*labeled(jobs_store, "pair_trace_compare"), *IN_THE_ITERATION)
    assert TraceDiff.ops_diff(*chosen, DeviceType.CPU) == {
        "added": ["AddmmBackward0", "All2All_Pooled_Req", "CatBackward0"],
        "deleted": ["nccl:all_reduce"],
        "increased": [],
        "decreased": [],
        "unchanged": [
            "ProfilerStep#1010",
            "aten::as_strided",
            "aten::empty",
            "cudaEventQuery",
            "cudaLaunchKernel",
        ],
    }
