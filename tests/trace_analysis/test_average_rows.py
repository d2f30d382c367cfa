"""TraceAnalysis.key_averages returns torch's rows, names, units and printed table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hta_sql import TraceAnalysis
from hta_sql.errors import ParameterError, RankError
from hta_sql.hta.methods.key_averages import SORT_KEYS, FunctionAverages
from tests.conftest import TRACES


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceAnalysis]:
    """Open a trace with device activity and memory events as rank 1, the only rank."""
    store = tmp_path_factory.mktemp("averages") / "store"
    with TraceAnalysis({1: str(TRACES / "operator_costs.json")}, store=store) as opened:
        yield opened


@pytest.fixture(scope="module")
def averages(analysis: TraceAnalysis) -> FunctionAverages:
    """Return the averages of rank 1."""
    return analysis.key_averages(rank=1)


def test_a_row_has_the_attributes_of_torch(averages: FunctionAverages) -> None:
    """Values are in microseconds and bytes, and attributes of other groupings are empty."""
    row = next(row for row in averages if row.key == "aten::addmm")
    assert (row.count, row.cpu_time_total, row.self_cpu_time_total, row.cpu_time) == (1, 20, 16, 20)
    assert (row.device_time_total, row.self_device_time_total, row.device_time) == (12, 12, 12)
    assert (row.cpu_memory_usage, row.self_cpu_memory_usage) == (64, 64)
    assert (row.device_memory_usage, row.self_device_memory_usage) == (512, 512)
    assert (row.input_shapes, row.stack, row.overload_name, row.flops) == ("", [], "", 0)
    assert (row.use_device, row.device_type) == ("cuda", "DeviceType.CPU")
    assert not row.is_user_annotation
    assert averages.self_cpu_time_total == 120


def test_rows_stand_in_the_order_of_first_calls(averages: FunctionAverages) -> None:
    """Rows, including those of kernels, are in the order of first calls."""
    first = [(row.key, row.device_type[11:]) for row in averages[:6]]
    assert first == [
        ("ProfilerStep*", "CPU"),
        ("train.py(3): step", "CPU"),
        ("nn.Module: Linear_0", "CPU"),
        ("aten::linear", "CPU"),
        ("aten::addmm", "CPU"),
        ("cudaLaunchKernel", "CPU"),
    ]
    assert ("gemm", "DeviceType.CUDA") in {(row.key, row.device_type) for row in averages}


def test_groups_have_their_keys(analysis: TraceAnalysis) -> None:
    """Shapes and frames are lists, and the overload is a string."""
    rows = analysis.key_averages(True, 1, True, 1)
    found = {row.key: (row.input_shapes, row.stack, row.overload_name) for row in rows}
    assert found["aten::linear"] == ([[2, 3], [4, 3], [4]], ["train.py(3): step"], "")
    assert found["aten::add"] == ([[2, 4], [2, 4], []], [], "Tensor")


def test_the_table_is_written_as_torch_writes_it(averages: FunctionAverages) -> None:
    """The table is sorted and limited as in torch, with total times below the rows."""
    table = averages.table(sort_by="self_cuda_time_total", row_limit=2, time_unit="us")
    rule, header, _, addmm, gemm, _, host, device = table.splitlines()
    assert " ".join(header.split()) == (
        "Name Self CPU % Self CPU CPU total % CPU total CPU time avg Self CUDA Self CUDA % CUDA total "
        "CUDA time avg CPU Mem Self CPU Mem CUDA Mem Self CUDA Mem # of Calls"
    )
    assert " ".join(gemm.split()) == (
        "gemm 0.00% 0.000us 0.00% 0.000us 0.000us 12.000us 30.00% 12.000us 12.000us 0 B 0 B 0 B 0 B 1"
    )
    assert " ".join(addmm.split()) == (
        "aten::addmm 13.33% 16.000us 16.67% 20.000us 20.000us 12.000us 30.00% 12.000us 12.000us "
        "64 B 64 B 512 B 512 B 1"
    )
    assert len({len(line) for line in (rule, gemm, addmm)}) == 1
    assert (host, device) == ("Self CPU time total: 120.000us", "Self CUDA time total: 40.000us")
    assert str(averages) == averages.table()


def test_a_range_that_ends_on_another_thread_has_no_share(averages: FunctionAverages) -> None:
    """The share of a range that ends on a different thread is 0 without a sign, as in torch."""
    (line,) = [line for line in averages.table().splitlines() if "gloo:" in line]
    assert line.split()[:5] == ["gloo:all_reduce", "0.00%", "0.000us", "0", "10.000us"]


@pytest.mark.parametrize("key", [*SORT_KEYS, "cuda_time_total", "self_xpu_memory_usage"])
def test_every_attribute_sorts(key: str, averages: FunctionAverages) -> None:
    """Rows can be sorted by every attribute, the highest first, with ties in row order."""
    attribute = key.replace("cuda", "device").replace("xpu", "device")
    wanted = sorted(averages, key=lambda row: getattr(row, attribute), reverse=True)
    again = FunctionAverages(wanted, with_memory=True)
    assert averages.table(sort_by=key, row_limit=-1) == again.table(row_limit=-1)


def test_what_does_not_exist_is_refused(
    analysis: TraceAnalysis, averages: FunctionAverages
) -> None:
    """The error for an unknown attribute suggests the nearest name."""
    with pytest.raises(ParameterError, match="Did you mean 'cpu_time_total'"):
        averages.table(sort_by="cpu_time_totals")
    with pytest.raises(ParameterError, match="time_unit must be s, ms or us"):
        averages.table(time_unit="h")  # type: ignore[arg-type]
    with pytest.raises(RankError):
        analysis.key_averages(rank=7)


def test_a_frame_has_a_column_for_each_attribute(averages: FunctionAverages) -> None:
    """The frame has a column for each attribute, and a row for each key."""
    frame = averages.df()
    assert len(frame) == len(averages)
    assert frame.set_index("key").loc["aten::add", "self_cpu_time_total"] == 9


def test_nothing_is_an_empty_table() -> None:
    """The table of a trace without events is empty, as in torch."""
    assert FunctionAverages([], with_memory=False).table() == ""
