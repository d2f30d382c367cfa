"""TraceDiff against HTA on two pairs of public traces: every cell and every list."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from hta_sql import LabeledTrace, TraceDiff, TraceStore
from hta_sql.trace_diff import DeviceType
from tests.parity.jobs import HTA

PAIRS = {
    "pair_trace_diff": ("hta_trace_diff_control", "hta_trace_diff_test"),
    "pair_trace_compare": ("hta_trace_compare_base", "hta_trace_compare_test"),
}

pytestmark = pytest.mark.skipif(not HTA.is_dir(), reason="HTA's numbers are not here")


def labeled(store: TraceStore, pair: str) -> tuple[LabeledTrace, LabeledTrace]:
    """Control and test, labelled as HTA labels folders."""
    control, test = PAIRS[pair]
    return LabeledTrace("Control", store, run=control), LabeledTrace("Test", store, run=test)


@pytest.mark.parametrize("pair", PAIRS)
def test_ranks_and_iterations_are_htas(pair: str, jobs_store: TraceStore) -> None:
    """All steps, the last one too."""
    control, test = labeled(jobs_store, pair)
    assert json.loads((HTA / pair / "trace_diff_iterations.json").read_text()) == {
        "control": control.iterations(),
        "test": test.iterations(),
        "control_ranks": control.ranks(),
        "test_ranks": test.ranks(),
    }


@pytest.mark.parametrize("short", [False, True], ids=["name", "short_name"])
@pytest.mark.parametrize("device", DeviceType, ids=lambda device: device.name)
@pytest.mark.parametrize("pair", PAIRS)
def test_frames_are_htas(
    pair: str, device: DeviceType, jobs_store: TraceStore, *, short: bool
) -> None:
    """The first step of the first rank of both; rows in any order."""
    ending = "_short" if short else ""
    expected = pd.read_parquet(HTA / pair / f"trace_diff_{device.name.lower()}{ending}.parquet")
    expected = expected.set_index(str(expected.columns[0])).sort_index()
    found = TraceDiff.compare_traces(
        *labeled(jobs_store, pair), device_type=device, use_short_name=short
    )
    assert len(found) > 0
    pd.testing.assert_frame_equal(found.sort_index(), expected, check_dtype=False, atol=0.0005)


@pytest.mark.parametrize("device", DeviceType, ids=lambda device: device.name)
@pytest.mark.parametrize("pair", PAIRS)
def test_lists_are_htas(pair: str, device: DeviceType, jobs_store: TraceStore) -> None:
    """What came, went, or runs more or less often."""
    expected = json.loads((HTA / pair / f"trace_diff_ops_{device.name.lower()}.json").read_text())
    found = TraceDiff.ops_diff(*labeled(jobs_store, pair), device_type=device)
    assert found == {change: sorted(names) for change, names in expected.items()}


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
