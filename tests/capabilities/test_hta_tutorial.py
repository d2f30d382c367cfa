"""Every call in HTA's README works, and so do the options of its tutorial that no other test uses.

The frames of these calls are tested in tests/trace_analysis and tests/test_hta_*.py, and compared
with HTA's in tests/parity. The job is the one in tests/cookbook, with two ranks and three steps.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from hta_sql import TraceAnalysis
from hta_sql.hta.trace_diff import DeviceType, LabeledTrace, TraceDiff
from tests.cookbook.job import Plan, write_job
from tests.drawn_marks import picture_marks
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder with one trace per rank."""
    return write_job(tmp_path_factory.mktemp("job") / "traces", Plan())


@pytest.fixture(scope="module")
def analyzer(traces: Path) -> Iterator[TraceAnalysis]:
    """Return the object that the tutorial calls ``analyzer``."""
    with TraceAnalysis(trace_dir=str(traces)) as opened:
        yield opened


def test_s0_18_image_renderer_is_accepted(analyzer: TraceAnalysis) -> None:
    """HTA's parameter ``image_renderer`` is accepted and has no effect."""
    types, kernels = analyzer.get_gpu_kernel_breakdown(visualize=False, image_renderer="jupyterlab")
    expected_types, expected_kernels = analyzer.get_gpu_kernel_breakdown(visualize=False)
    pd.testing.assert_frame_equal(types, expected_types)
    pd.testing.assert_frame_equal(kernels, expected_kernels)


def test_s2_09_trace_comparison(traces: Path, tmp_path: Path) -> None:
    """A forward GEMM that takes half the time is reported by name with its difference.

    The differences are also drawn.
    """
    faster = write_job(tmp_path / "faster", Plan(gemm_forward=40))
    control = LabeledTrace("control", trace_dir=str(traces))
    test = LabeledTrace("test", trace_dir=str(faster))
    frame = TraceDiff.compare_traces(control, test, device_type=DeviceType.GPU)
    assert frame.loc["gemm_fwd", "diff_duration"] == -40.0
    assert TraceDiff.ops_diff(control, test)["added"] == []
    TraceDiff.visualize_duration_diff(
        frame, show_image=False, export_image_path=str(tmp_path / "d.svg")
    )
    # Two bars for each of five kernels and a copy, and one for the only difference.
    assert picture_marks((tmp_path / "d.svg").read_bytes())["rect"] == 2 * 6 + 1


def test_s2_15_every_call_of_the_readme(traces: Path, tmp_path: Path) -> None:
    """The calls in HTA's README work if one import is changed."""
    from hta_sql.hta.trace_analysis import TraceAnalysis  # noqa: PLC0415 - the line that changes

    analyzer = TraceAnalysis(trace_dir=str(traces))
    assert len(analyzer.get_temporal_breakdown()) == 2
    assert len(analyzer.get_gpu_kernel_breakdown()) == 2
    assert len(analyzer.get_idle_time_breakdown()) == 2
    assert len(analyzer.get_comm_comp_overlap()) == 2
    call: dict[str, Any] = {"operator_name": "aten::linear", "output_dir": str(tmp_path)}
    assert analyzer.get_frequent_cuda_kernel_patterns(**call) is not None
    assert len(analyzer.get_cuda_kernel_launch_stats()) == 1
    assert len(analyzer.get_memory_bw_time_series()) == 1
    assert analyzer.get_memory_bw_summary() is not None
    assert len(analyzer.get_queue_length_time_series()) == 1
    assert analyzer.get_queue_length_summary() is not None
    analyzer.close()


def test_s2_16_logging_is_pythons_own(
    traces: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Log records use Python's logger ``hta_sql``."""
    with caplog.at_level(logging.INFO, logger="hta_sql"):
        ingest_only(traces, tmp_path / "a.store")
    assert [r for r in caplog.records if r.name.startswith("hta_sql")]
