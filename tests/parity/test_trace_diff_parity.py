"""TraceDiff of two public traces: the numbers of HTA's own tests. Every cell: test_hta.py."""

from __future__ import annotations

import pytest

from hta_sql import TraceDiff, TraceStore
from hta_sql.trace_diff import DeviceType
from tests.parity.jobs import HTA
from tests.parity.pairs import labeled

pytestmark = pytest.mark.skipif(not HTA.is_dir(), reason="HTA's numbers are not here")


def test_the_numbers_of_htas_own_tests(jobs_store: TraceStore) -> None:
    """Iteration 1010 of rank 1: 6 host events and 1 kernel, against 8 and none."""
    base, test = labeled(jobs_store, "pair_trace_compare")
    chosen = (base, test, 1, 1, 1010, 1010)
    summary = base.get_ops_summary(base.extract_ops(1, 1010, DeviceType.CPU))
    rows = summary[["name", "counts", "total_duration"]].itertuples(index=False, name=None)
    assert sorted(rows) == [
        ("ProfilerStep#1010", 1, 122149),
        ("aten::as_strided", 1, 0),
        ("aten::empty", 1, 0),
        ("cudaEventQuery", 1, 4),
        ("cudaLaunchKernel", 1, 4),
        ("nccl:all_reduce", 1, 67),
    ]
    assert len(base.extract_ops(1, 1010, DeviceType.GPU)) == 1
    host = TraceDiff.compare_traces(*chosen, DeviceType.CPU, use_short_name=True)
    assert host["counts_change_categories"].value_counts().to_dict() == {"=": 5, "+": 3, "-": 1}
    device = TraceDiff.compare_traces(*chosen, DeviceType.GPU, use_short_name=True)
    assert list(device["counts_change_categories"]) == ["-"]
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
