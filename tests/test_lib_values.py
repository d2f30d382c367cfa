"""Tests of the sql/lib macros that return one value, such as sizes, factors and peaks."""

from __future__ import annotations

from functools import cache

import duckdb
import pytest

from tests.macros import engine_with, value_in

MACROS = (
    *("busbw_factor", "elem_bytes", "link_peak", "message_bytes"),
    *(
        "conv_flops",
        "conv_output_shape",
        "_counted_shapes",
        "gemm_flops",
        "is_backward_op",
        "_demangled_name",
        "estimated_occupancy_pct",
        "exceeds_launching",
        "loads_data",
        "_matmul_flops",
        "module_class",
        "module_name",
        "op_base_name",
        "_operator_flops",
        "_shape_of",
        "weighted_mean",
    ),
)

SIZES = {
    1: "Byte Char Bool QInt8 QUInt8 INT8 UINT8 Float8_e4m3fn Float8_e5m2 bool char c10::Float8_e5m2",
    2: "BFloat16 Half Short UInt16 FP16 BFP16 BF16 INT16 UINT16 c10::BFloat16 c10::Half short",
    4: "Float Int UInt32 QInt32 FP32 INT32 UINT32 ComplexHalf float int",
    8: "Double Long UInt64 FP64 INT64 UINT64 ComplexFloat double long c10::complex<float>",
    16: "ComplexDouble c10::complex<double>",
    None: "MyFloat8 Scalar TensorList Nothing",
}

PEAKS = {
    80.0: ["Tesla P100-SXM2-16GB", "P100 16GB SXM2"],
    150.0: [
        *("Tesla V100-SXM2-16GB", "V100-NVLINK", "Tesla V100-DGXS-32GB"),
        *("V100 16GB SXM2", "V100 16GB NVLINK", "V100 16GB DGXS"),
        *("AMD Instinct MI210", "AMD Instinct MI250X"),
    ],
    16.0: ["Tesla V100-PCIE-32GB", "V100 32GB PCIE"],
    200.0: ["NVIDIA A800-SXM4-80GB", "NVIDIA H800 PCIe"],
    32.0: ["NVIDIA A100-PCIE-40GB", "NVIDIA A100 80GB PCIe"],
    300.0: ["NVIDIA A100-SXM4-80GB"],
    64.0: ["NVIDIA H100 PCIe", "NVIDIA H100 80GB PCIe"],
    450.0: ["NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA H20", "NVIDIA GH200 480GB"],
    900.0: ["NVIDIA B100", "NVIDIA B200", "NVIDIA B300 SXM6 AC"],
    448.0: ["AMD Instinct MI300X", "AMD Instinct MI308X", "AMD Instinct MI325X"],
    537.6: ["AMD Instinct MI350X", "AMD Instinct MI355X"],
    None: [
        *("Tesla P100-PCIE-16GB", "Tesla V100-FHHL", "Tesla K80", "Quadro SXM", "", "GeForce DGXS"),
        *("PCIE", "NVLINK"),
    ],
}

FACTORS = {
    1.5: "all_reduce",
    0.75: "all_gather reduce_scatter all_to_all gather scatter",
    1.0: "broadcast reduce send recv send_recv",
    None: "barrier",
}
"""Expected bus bandwidth factors for four ranks."""


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """Return one shared engine with the macros."""
    return engine_with(MACROS)


def value(call: str, *arguments: object) -> object:
    """Evaluate a macro call and return its value."""
    return value_in(connection(), call, arguments)


@pytest.mark.parametrize("size", SIZES)
def test_bytes_of_an_element(size: int | None) -> None:
    """Type names of PyTorch, Ascend and MindSpore have a size, and unknown types have none."""
    sizes = {name: value("lib.elem_bytes(?)", name) for name in SIZES[size].split()}
    assert sizes == dict.fromkeys(sizes, size)


@pytest.mark.parametrize("peak", PEAKS)
def test_peak_of_the_links(peak: float | None) -> None:
    """The peak link bandwidth [GB/s] depends on the device model, and is NULL for other models."""
    peaks = {model: value("lib.link_peak(?)", model) for model in PEAKS[peak]}
    assert peaks == dict.fromkeys(peaks, peak)


@pytest.mark.parametrize("factor", FACTORS)
def test_factor_of_the_bus_bandwidth(factor: float | None) -> None:
    """For four ranks, the factors equal those of nccl-tests."""
    factors = {name: value("lib.busbw_factor(?, 4)", name) for name in FACTORS[factor].split()}
    assert factors == dict.fromkeys(factors, factor)


@pytest.mark.parametrize(
    ("collective", "sent", "received", "size"),
    [
        ("all_gather", 10, 40, 80),
        ("gather", 10, 40, 80),
        ("recv", 10, 40, 80),
        ("all_gather", 10, 0, 20),
        ("all_gather", 10, 1, 2),
        ("all_gather", 10, None, 20),
        ("all_reduce", 10, 40, 20),
        ("all_reduce", 0, 40, 80),
        ("all_reduce", 1, 40, 2),
        ("all_reduce", None, 40, 80),
        ("all_reduce", None, None, None),
    ],
)
def test_bytes_of_a_message(
    collective: str, sent: int | None, received: int | None, size: int | None
) -> None:
    """The size is that of the output for all_gather, gather and recv, and otherwise of the input.

    If the element count is unknown (NULL or 0), the count of the other side is used. Elements have
    two bytes.
    """
    call = "lib.message_bytes(?, 'Half', ?::BIGINT, ?::BIGINT)"
    assert value(call, collective, sent, received) == size


def test_a_message_of_unknown_type() -> None:
    """A message whose element type is unknown has an unknown size."""
    assert value("lib.message_bytes('all_reduce', 'Nothing', 1, 1)") is None


IMAGE = "[[2,6,9,8],[4,3,3,2],[4],[],[],[],[]]"
"""Input shapes: two images of six channels, and four filters over three channels per group."""


@pytest.mark.parametrize(
    ("operator", "shapes", "scalars", "flops"),
    [
        ("aten::mm", "[[2,3],[3,4]]", None, 2 * 2 * 3 * 4),
        ("aten::bmm", "[[5,2,3],[5,3,4]]", None, 2 * 5 * 2 * 3 * 4),
        ("aten::addmm", "[[4],[2,3],[3,4],[],[]]", None, 2 * 2 * 3 * 4),
        ("aten::baddbmm", "[[4],[5,2,3],[5,3,4],[],[]]", None, 2 * 5 * 2 * 3 * 4),
        ("aten::mm", "[[3],[3,4]]", None, None),
        ("aten::mm", None, None, None),
        ("aten::add", "[[2,3],[2,3],[]]", None, 6),
        ("aten::mul", "[[],[2,3]]", None, 1),
        ("aten::add", None, None, None),
        ("aten::sub", "[[2,3],[2,3],[]]", None, None),
        # The output of a 9 x 8 image has 9 x 7 positions: 2 x 2 images x 4 filters x 3 x 3 x 2 x
        # 63.
        (
            "aten::conv2d",
            IMAGE,
            '["","","","[1, 1]","[1, 0]","[1, 1]","2"]',
            2 * 2 * 4 * 3 * 3 * 2 * 9 * 7,
        ),
        # With strides 2 and 3, padding 1, and dilation 2 and 1, there are 4 x 3 positions.
        (
            "aten::conv2d",
            IMAGE,
            '["","","","[2, 3]","[1]","[2, 1]","2"]',
            2 * 2 * 4 * 3 * 3 * 2 * 4 * 3,
        ),
        ("aten::conv2d", IMAGE, None, None),
        # This is how nn.Conv2d(padding="same") is recorded.
        ("aten::conv2d", IMAGE, '["","","","[1, 1]","same","[1, 1]","2"]', None),
        ("aten::conv2d", "[[6,9,8],[4,3,3,2]]", '["","","","[1]","[0]","[1]","2"]', None),
    ],
)
def test_operations_of_an_operator(
    operator: str, shapes: str | None, scalars: str | None, flops: int | None
) -> None:
    """Operations are counted by torch's formulas, and are unknown without inputs or a formula."""
    assert value("lib._operator_flops(?, ?, ?)", operator, shapes, scalars) == flops


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        ("aten::add.Tensor", "aten::add"),
        ("aten::add", "aten::add"),
        ("ProfilerStep#12", "ProfilerStep*"),
        ("train.py(3): step", "train.py(3): step"),
        ("aten::add.Tensor.more", "aten::add.Tensor.more"),
        ("nn.Module: Linear_0", "nn.Module: Linear_0"),
    ],
)
def test_names_without_overload(recorded: str, name: str) -> None:
    """An overload is only removed from a name that has the form of an operator."""
    assert value("lib.op_base_name(?)", recorded) == name


@pytest.mark.parametrize(
    ("shapes", "types", "shown"),
    [
        ("[[2],[3,4]]", '["float","float"]', "[[2],[3,4]]"),
        ("[[[2],[3]],[4]]", '["TensorList","float"]', "[[],[4]]"),
        (None, None, "[]"),
        (None, '["TensorList"]', "[]"),
        ("[[2]]", None, "[[2]]"),
    ],
)
def test_shapes_as_torch_shows_them(shapes: str | None, types: str | None, shown: str) -> None:
    """A list of tensors has an empty shape, and so has an operator without recorded shapes."""
    assert value("lib._counted_shapes(?, ?)", shapes, types) == shown


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_Z6kernelPfi", "kernel"),
        ("_ZN7cutlass6KernelINS_4gemm4GemmEEEvT_", "cutlass::Kernel"),
        ("_ZNK3foo3barEv", "foo::bar"),
        (
            "_ZN2at6native12_GLOBAL__N_110softmax_v2IfEEvv",
            "at::native::(anonymous namespace)::softmax_v2",
        ),
        ("_ZN1a1b1c1d1e1f1g1h1i1j1k1l1mEv", "a::b::c::d::e::f::g::h::i::j::k::l"),
        ("_ZN19cut_off", "cut_off"),
        ("_ZSt4moveIiEvv", "_ZSt4moveIiEvv"),
        ("void kernel<2>(int)", "void kernel<2>(int)"),
        ("a|3", "a|3"),
        ("", ""),
    ],
)
def test_names_in_mangled_ones(mangled: str, name: str) -> None:
    """Up to twelve parts of a mangled name are parsed by length; other names are unchanged."""
    assert value("lib._demangled_name(?)", mangled) == name


@pytest.mark.parametrize(
    ("recorded", "shared_bytes", "estimate"),
    [
        (37.0, 200_000, 37.0),
        (0.0, 49_152, 0.0),
        (0.0, 49_153, None),
        (0.0, None, 0.0),
        (-99.0, 0, None),
        (None, 0, None),
    ],
)
def test_a_recorded_occupancy_of_0_is_unknown_if_the_estimate_fits_no_block(
    recorded: float | None, shared_bytes: int | None, estimate: float | None
) -> None:
    """Kineto's estimate assumes at most 48 KiB of shared memory per block; a failed one is < 0."""
    call = "lib.estimated_occupancy_pct(?::DOUBLE, ?::BIGINT)"
    assert value(call, recorded, shared_bytes) == estimate


@pytest.mark.parametrize(
    ("name", "loads"),
    [
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", True),
        ("enumerate(DataPipe)#IterableWrapper", True),
        ("## data ##", True),
        ("load_data_loader", True),
        ("data_parallel", False),
        ("## forward ##", False),
    ],
)
def test_annotations_that_load_data(name: str, loads: bool) -> None:
    """Torch's annotations and common user annotations for data loading are recognized."""
    assert value("lib.loads_data(?)", name) == loads


@pytest.mark.parametrize(
    ("idle_ns", "exceeds"), [(2_000_000, False), (2_000_001, True), (None, None)]
)
def test_gaps_of_more_than_200_launches_are_not_from_launching(
    idle_ns: int | None, exceeds: bool | None
) -> None:
    """Two gaps with launches of 5 µs may take 2 ms together."""
    assert value("lib.exceeds_launching(?, 2, 5000)", idle_ns) is exceeds


@pytest.mark.parametrize(
    ("pairs", "mean"),
    [
        ([(1.0, 1), (4.0, 2)], 3.0),
        ([(1.0, 1), (None, 100)], 1.0),
        ([(0.0000014, 1)], 0.000001),
        ([(464.59259, 10**12), (0.1, 10**12)], 232.346295),
        ([(2.0, 0)], None),
        ([(None, 1)], None),
        ([], None),
    ],
)
def test_means_by_weight(pairs: list[tuple[float | None, int]], mean: float | None) -> None:
    """The mean ignores unknown values, is exact to a millionth, and is NULL for zero weight."""
    call = "lib.weighted_mean(p.x, p.w) FROM (SELECT unnest(?::STRUCT(x DOUBLE, w BIGINT)[]) AS p)"
    given = [{"x": x, "w": w} for x, w in pairs]
    assert value(call, given) == (mean if mean is None else pytest.approx(mean, abs=1e-9))


def test_operators_of_the_backward_pass() -> None:
    """Backward operators are recognized by their forward operator or by their name."""
    names = (
        *("AddmmBackward0", "CompiledFunctionBackward", "torch::autograd::AccumulateGrad"),
        "autograd::engine::evaluate_function: NllLossBackward0",
        "autograd::engine::evaluate_function: torch::autograd::CopySlices",
    )
    assert all(value("lib.is_backward_op(?, NULL)", name) for name in names)
    assert value("lib.is_backward_op('aten::mm', 7)")
    assert not value("lib.is_backward_op('aten::mm', NULL)")


@pytest.mark.parametrize(
    ("frame", "name", "kind"),
    [
        ("nn.Module: Linear_3", "Linear_3", "Linear"),
        ("nn.Module: Conv2d_1_12", "Conv2d_1_12", "Conv2d_1"),
        ("model.py(71): forward", None, None),
        (None, None, None),
    ],
)
def test_modules_have_a_name_and_a_class(
    frame: str | None, name: str | None, kind: str | None
) -> None:
    """A module has a name and a class, which is the name without the instance number."""
    sql = "SELECT lib.module_name($frame), lib.module_class(lib.module_name($frame))"
    assert connection().execute(sql, {"frame": frame}).fetchall() == [(name, kind)]
