"""Tests of the computed work of operators: formulas on literals, and recorded operators."""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from typing import Any

import duckdb
import pytest

from hta_sql.library.creation import create_empty_tables
from hta_sql.library.objects import load_library

MACROS = (
    *("_attended_pairs", "_attention_flops", "gemm_bytes", "_operator_models", "_operator_work"),
    *("roofline_ns", "_vector_flops"),
)
"""Macros that this module tests."""

HALF, BF16, FP8 = "c10::Half", "c10::BFloat16", "c10::Float8_e4m3fn"


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """Return one shared engine with the tested macros."""
    library = load_library()
    (work,) = (macro for macro in library.macros if macro.name == "_operator_work")
    wanted = {"gemm_bytes", "roofline_ns"} | {m.name for m in library.stands_on(work)}
    con = duckdb.connect(":memory:", config={"threads": 1})
    create_empty_tables(con, library)
    con.execute(next(table.text for table in library.tables if table.name == "device_peaks"))
    for macro in library.macros_in_order:
        if macro.name in wanted:
            con.execute(macro.text)
    return con


def value(call: str) -> Any:
    """Return the value of a macro call that has only literal arguments."""
    (found,) = connection().execute(f"SELECT {call}").fetchall()[0]
    return found


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("lib.gemm_flops(4096, 1024, 512)", 2 * 4096 * 1024 * 512),
        ("lib.gemm_flops(2, 3, 4, batch := 5)", 2 * 2 * 3 * 4 * 5),
        ("lib.gemm_flops(65536, 65536, 65536)", 2 * 65536**3),
        ("lib.gemm_bytes(2, 3, 4, 2, 4)", (2 * 4 + 4 * 3) * 2 + 2 * 3 * 4),
        ("lib.gemm_bytes(2, 3, 4, 2, 4, batch := 5)", 5 * 64),
        # With padding 1, the output is also 32 x 32. Each position needs 16 filters of 3 x 3 x 3.
        ("lib.conv_output_shape([8, 3, 32, 32], [16, 3, 3, 3], [1], [1], [1])", [8, 16, 32, 32]),
        ("lib.conv_flops([16, 3, 3, 3], [8, 16, 32, 32])", 2 * 8 * 32 * 32 * 16 * 27),
        # Convolutions in one and three dimensions, with stride and dilation.
        ("lib.conv_output_shape([1, 2, 9], [4, 2, 3], [2], [1], [2])", [1, 4, 4]),
        ("lib.conv_output_shape([1, 1, 4, 5, 6], [1, 1, 2, 2, 2], [1, 2, 3], [0], [1])", [1, 1, 3, 2, 2]),
        ("lib.conv_flops([4, 2, 3], [1, 4, 4])", 2 * 4 * 24),
        ("lib.conv_flops([4, 2], [1, 4])", None),
        ("lib.conv_output_shape([1, 2, 9], [4, 2, 3], NULL, [1], [2])", None),
        # Forward has two products and backward five. A causal mask halves the work.
        ("lib._attention_flops(2, 8, 128 * 128, 64, 64)", 4 * 2 * 8 * 128 * 128 * 64),
        ("lib._attention_flops(2, 8, 128 * 128, 64, 64, is_backward := true)", 10 * 2 * 8 * 128 * 128 * 64),
        ("lib._attention_flops(1, 1, 10, 3, 5)", 2 * 10 * (3 + 5)),
        ("lib._attention_flops(1, 1, 10, 3, 5, is_backward := true)", 2 * 10 * (9 + 10)),
        ("lib._attended_pairs(128, 128, NULL, 0)", 128 * 129 // 2),
        ("lib._vector_flops('norm', 10)", 80),
        ("lib._vector_flops('norm_backward', 10)", 120),
        ("lib._vector_flops('rms_norm', 10)", 40),
        ("lib._vector_flops('rms_norm_backward', 10)", 80),
        ("lib._vector_flops('softmax', 10)", 50),
        ("lib._vector_flops('softmax_backward', 10)", 40),
        ("lib._vector_flops('elementwise', 10)", 10),
        ("lib._vector_flops('reduce', 10)", 10),
        ("lib._vector_flops('nothing', 10)", None),
        # 1e12 operations at 100 TFLOP/s take 10 ms, and 1e9 bytes at 1 TB/s take 1 ms.
        ("lib.roofline_ns(1e12, 1e9, 100, 1)", 1e7),
        ("lib.roofline_ns(1e10, 1e9, 100, 1)", 1e6),
        ("lib.roofline_ns(0, 1e9, NULL, 1)", 1e6),
        ("lib.roofline_ns(1, 1e9, NULL, 1)", None),
        ("lib.roofline_ns(NULL, 1e9, 100, 1)", None),
        ("lib.roofline_ns(1, NULL, 100, 1)", None),
        ("lib.roofline_ns(0, 1e9, 100, NULL)", None),
    ],
)  # fmt: skip
def test_formulas_with_literals(call: str, expected: Any) -> None:
    """The formulas only need literal arguments, not a trace."""
    assert value(call) == expected


def test_pairs_of_an_attention() -> None:
    """The number of attention pairs matches a brute-force count for any mask window."""
    sides = (None, -1, 0, 1, 2, 9)
    masks = list(product(range(1, 6), range(1, 6), sides, sides))
    columns = [list(column) for column in zip(*masks, strict=True)]
    rows = connection().execute(
        "SELECT lib._attended_pairs(q, k, l, r) FROM "
        "(SELECT unnest(?::INT[]) AS q, unnest(?::INT[]) AS k, unnest(?::INT[]) AS l, unnest(?::INT[]) AS r)",
        columns,
    )
    assert [pairs for (pairs,) in rows.fetchall()] == [counted(*mask) for mask in masks]


def counted(queries: int, keys: int, left: int | None, right: int | None) -> int:
    """Count the pairs that are not masked; the last query is aligned with the last key."""
    opposite = keys - queries
    return sum(
        (left is None or left < 0 or j >= i + opposite - left)
        and (right is None or right < 0 or j <= i + opposite + right)
        for i in range(queries)
        for j in range(keys)
    )


S = "Scalar"
CONV = ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "1"]
QKV = [[2, 128, 4, 64]] * 3
FLASH = ["", "", "", "", "", "128", "128", "0."]
SEQUENCES = ("operator_work.lengths_not_recorded",)
UNKNOWN = ("operator_work.inputs_insufficient",)
NO_GROUPS = ("operator_work.group_sizes_not_recorded",)


# fmt: off
CALLS: list[tuple[str, Any, Any, Any, tuple[Any, ...] | None]] = [
    # Matrix products: a, b, the result, and what is added to it.
    ("aten::mm", [[2, 3], [3, 4]], [HALF] * 2, ["", ""], (HALF, 48, 52)),
    ("aten::bmm", [[5, 2, 3], [5, 3, 4]], [HALF] * 2, ["", ""], (HALF, 240, 260)),
    ("aten::addmm", [[4], [2, 3], [3, 4], [], []], [BF16] * 3 + [S, S], ["", "", "", "1", "1"], (BF16, 48, 60)),
    ("aten::addmm", [[4], [2, 3], [3, 4], [], []], [BF16] * 3 + [S, S], ["", "", "", "0", "1"], (BF16, 48, 52)),
    ("aten::baddbmm", [[5, 2, 4], [5, 2, 3], [5, 3, 4], [], []], ["float"] * 3 + [S, S], ["", "", "", "1", "1"],
     ("float", 240, 5 * 26 * 4 + 160)),
    ("aten::linear", [[5, 2, 3], [4, 3], [4]], ["float"] * 3, [""] * 3, ("float", 240, (30 + 12 + 40 + 4) * 4)),
    ("aten::matmul", [[5, 2, 3], [3, 4]], ["float"] * 2, [""] * 2, ("float", 240, (30 + 12 + 40) * 4)),
    ("aten::matmul", [[7, 5, 2, 3], [7, 5, 3, 4]], ["float"] * 2, [""] * 2, ("float", 35 * 48, 35 * 26 * 4)),
    ("aten::matmul", [[1, 5, 2, 3], [7, 5, 3, 4]], ["float"] * 2, [""] * 2, UNKNOWN),
    ("aten::linear", [[5, 2, 3], [3]], ["float"] * 2, [""] * 2, UNKNOWN),
    ("aten::mv", [[2, 3], [3]], ["double"] * 2, [""] * 2, ("double", 12, 11 * 8)),
    ("aten::dot", [[3], [3]], ["float"] * 2, [""] * 2, ("float", 6, 28)),
    ("aten::_int_mm", [[2, 3], [3, 4]], ["signed char"] * 2, [""] * 2, ("signed char", 48, 18 + 32)),
    # The inputs have eight bits. The output type is number 15, which has two bytes.
    ("aten::_scaled_mm", [[2, 3], [3, 4], *[[]] * 6], [FP8, FP8, "float", "float", "", "", S, S],
     [""] * 6 + ["15", "True"], (FP8, 48, 18 + 16)),
    ("aten::_scaled_mm_v2", [[2, 3], [3, 4], *[[]] * 10], [FP8, FP8, *[""] * 7, S, "", S],
     [""] * 9 + ["15", "", "True"], (FP8, 48, 18 + 16)),
    ("aten::_scaled_grouped_mm_v2", [[10, 3], [2, 3, 4], *[[]] * 6, [2], [], []], [FP8, FP8, *[""] * 6, "int", "", S],
     [""] * 8 + ["[2, 7]", "", "15"], (FP8, 168, 21 + 24 + 28 * 2)),
    # The groups end at row 7 of a buffer of 10 rows. Usually, the trace does not record these ends.
    ("aten::_grouped_mm", [[10, 3], [2, 3, 4], [2]], [BF16, BF16, "int"], [""] * 5, NO_GROUPS),
    ("aten::_grouped_mm", [[3, 10], [10, 4], [2]], [BF16, BF16, "int"], [""] * 5, NO_GROUPS),
    ("aten::_grouped_mm", [[10, 3], [2, 3, 4], [2]], [BF16, BF16, "int"], ["", "", "[2, 7]", "", ""],
     (BF16, 168, (21 + 24 + 28) * 2)),
    ("aten::_grouped_mm", [[3, 10], [10, 4], [2]], [BF16, BF16, "int"], ["", "", "[2, 7]", "", ""],
     (BF16, 168, (21 + 28 + 24) * 2)),
    ("aten::_grouped_mm", [[2, 3, 5], [5, 10], [2]], [BF16, BF16, "int"], ["", "", "[2, 7]", "", ""],
     (BF16, 210, (30 + 35 + 21) * 2)),
    ("aten::_grouped_mm", [[2, 3, 5], [2, 5, 4]], [BF16, BF16], [""] * 5, (BF16, 240, (30 + 40 + 24) * 2)),
    # Convolutions: one product of the weight for each position of the output. A transposed
    # convolution has one for each position of the input.
    ("aten::conv2d", [[1, 2, 8, 8], [4, 2, 3, 3], [4]], ["float"] * 3, CONV, ("float", 2 * 36 * 72, (128 + 72 + 144 + 4) * 4)),
    ("aten::cudnn_convolution", [[1, 2, 8, 8], [4, 2, 3, 3]], [HALF] * 2,
     ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "1"], (HALF, 2 * 16 * 72, (128 + 72 + 64) * 2)),
    ("aten::cudnn_convolution_transpose", [[1, 4, 4, 4], [4, 2, 2, 2]], [BF16] * 2,
     ["", "", "[0, 0]", "[0, 0]", "[2, 2]", "[1, 1]", "1"], (BF16, 2 * 16 * 32, (64 + 32 + 128) * 2)),
    ("aten::cudnn_convolution", [[1, 2, 8, 8], [4, 2, 3, 3]], [HALF] * 2, None, UNKNOWN),
    # Padding by name, as nn.Conv2d(padding="same") records it, and lists that were not recorded.
    ("aten::conv2d", [[1, 2, 8, 8], [4, 2, 3, 3], [4]], ["float"] * 3, ["", "", "", "[1, 1]", "same", "[1, 1]", "1"], UNKNOWN),
    ("aten::cudnn_convolution", [[1, 2, 8, 8], [4, 2, 3, 3]], [HALF] * 2, ["", "", "[1, 1]", "", "[1, 1]", "1"], UNKNOWN),
    ("aten::cudnn_convolution_transpose", [[1, 4, 4, 4], [4, 2, 2, 2]], [BF16] * 2,
     ["", "", "[0, 0]", "", "[2, 2]", "[1, 1]", "1"], UNKNOWN),
    ("aten::convolution_backward", [[1, 4, 6, 6], [1, 2, 8, 8], [4, 2, 3, 3]], ["float"] * 3,
     [""] * 7 + ["False", "[0, 0]", "1", ""], UNKNOWN),
    # Gradients of input and weight, then of the weight alone.
    ("aten::convolution_backward", [[1, 4, 6, 6], [1, 2, 8, 8], [4, 2, 3, 3]], ["float"] * 3,
     [""] * 7 + ["False", "[0, 0]", "1", "[True, True, False]"], ("float", 4 * 36 * 72, (144 + 2 * 128 + 2 * 72) * 4)),
    ("aten::convolution_backward", [[1, 4, 6, 6], [1, 2, 8, 8], [4, 2, 3, 3]], ["float"] * 3,
     [""] * 7 + ["False", "[0, 0]", "1", "[False, True, False]"], ("float", 2 * 36 * 72, (144 + 128 + 72) * 4)),
    # Attention: query, key, value, result, and a float for each query.
    ("aten::_flash_attention_forward", QKV, [BF16] * 3, [*FLASH, "False"], (BF16, 2 * 8 * 128 * 128 * 128, 8 * 128 * 64 * 8 + 4096)),
    ("aten::_flash_attention_forward", QKV, [BF16] * 3, [*FLASH, "True"], (BF16, 2 * 8 * 8256 * 128, 8 * 128 * 64 * 8 + 4096)),
    ("aten::_flash_attention_forward", QKV, [BF16] * 3, [*FLASH, "False", "False", "", "15", "0"],
     (BF16, 2 * 8 * (128 * 16 - 120) * 128, 8 * 128 * 64 * 8 + 4096)),
    ("aten::_flash_attention_forward", [[128, 4, 64]] * 3 + [[3]], [BF16] * 3 + ["int"], [*FLASH, "True"], SEQUENCES),
    ("aten::_flash_attention_forward", QKV, [BF16] * 3, None, UNKNOWN),
    # Fewer heads of keys and values than of queries; the head dimension precedes the sequence.
    ("aten::scaled_dot_product_attention", [[2, 4, 8, 64], [2, 2, 16, 64], [2, 2, 16, 32]], [HALF] * 3,
     ["", "", "", "", "0.", "False"], (HALF, 2 * 8 * 8 * 16 * 96, (4096 + 4096 + 2048 + 2048) * 2 + 256)),
    # A causal mask starts at the first query and the first key.
    ("aten::scaled_dot_product_attention", [[1, 1, 8, 64], [1, 1, 16, 64], [1, 1, 16, 64]], [HALF] * 3,
     ["", "", "", "", "0.", "True"], (HALF, 2 * 36 * 128, (512 + 1024 + 1024 + 512) * 2 + 32)),
    ("aten::scaled_dot_product_attention", [[1, 1, 16, 64], [1, 1, 8, 64], [1, 1, 8, 64]], [HALF] * 3,
     ["", "", "", "", "0.", "True"], UNKNOWN),
    ("aten::_efficient_attention_backward", [QKV[0]] * 4 + [[], QKV[0]], [HALF] * 4 + ["", HALF],
     [""] * 11 + ["0.", "", "", "2"], (HALF, 2 * 8 * 8256 * 320, 2 * 4 * 131072 + 4096)),
    ("aten::_efficient_attention_forward", QKV, [HALF] * 3, [""] * 8 + ["0.", "1", "False", "", "", "16"],
     (HALF, 2 * 8 * (128 * 16 - 120) * 128, 8 * 128 * 64 * 8 + 4096)),
    ("aten::_efficient_attention_forward", QKV, [HALF] * 3, [""] * 8 + ["0.", "1", "False", "", "", "0"],
     (HALF, 2 * 8 * 8256 * 128, 8 * 128 * 64 * 8 + 4096)),
    ("aten::_cudnn_attention_backward", [[2, 4, 128, 64]] * 5, [HALF] * 5, [""] * 13 + ["0.", "True"],
     (HALF, 2 * 8 * 8256 * 320, 2 * 4 * 131072 + 4096)),
    ("flash_attn::_flash_attn_forward", QKV, [HALF] * 3, ["", "", "", "0.", "1.", "True", "-1", "-1"],
     (HALF, 2 * 8 * 8256 * 128, 8 * 128 * 64 * 8 + 4096)),
    # All inputs are read, and the result is as large as the first input.
    ("aten::native_layer_norm", [[2, 3, 8], [], [8], [8], []], [BF16, "ScalarList", BF16, BF16, S], ["", "[8]", "", "", "1e-5"],
     ("c10::BFloat16", 48 * 8, 96 + 32 + 96)),
    ("aten::_fused_rms_norm", [[6, 8], [], [8], []], ["float", "ScalarList", "float", S], ["", "[8]", "", ""],
     ("float", 48 * 4, 192 + 32 + 192)),
    ("aten::_softmax", [[2, 3], [], []], [BF16, S, S], ["", "-1", "False"], (BF16, 30, 24)),
    ("aten::_softmax", [[2, 3], [], []], [BF16, S, S], ["", "-1", "True"], (BF16, 30, 36)),
    ("aten::_log_softmax_backward_data", [[2, 3], [2, 3], [], []], ["float", "float", S, S], ["", "", "1", "6"], ("float", 24, 72)),
    # Shapes are broadcast, and a scalar of a different kind decides the result type.
    ("aten::add", [[2, 1, 3], [4, 1], []], ["float", "float", S], ["", "", "1"], ("float", 24, (6 + 4 + 24) * 4)),
    ("aten::add", [[2, 3], [], []], ["long int", "double", S], ["", "", "1"], ("float", 6, 48 + 8 + 24)),
    ("aten::add", [[2, 3], [], []], [BF16, "double", S], ["", "", "1"], ("float", 6, 12 + 8 + 12)),
    ("aten::mul", [[2, 3], []], ["int", S], ["", "0.5"], ("float", 6, 48)),
    ("aten::mul", [[2, 3], []], ["bool", S], ["", "2"], ("float", 0, 6 + 48)),
    ("aten::add", [[2, 3], [2, 3], []], ["double", "float", S], ["", "", "1"], ("double", 6, 48 + 24 + 48)),
    ("aten::add_", [[2, 3], [3], []], [BF16, BF16, S], ["", "", "1"], ("float", 6, 12 + 6 + 12)),
    ("aten::add", [[2, 3], [2, 3], [], [2, 3]], ["float", "float", S, "float"], ["", "", "1", ""], ("float", 6, 72)),
    ("aten::div", [[2, 3], [3]], ["long int"] * 2, ["", ""], ("float", 6, 48 + 24 + 24)),
    ("aten::eq", [[2, 3], []], [BF16, S], ["", "1"], ("float", 6, 12 + 6)),
    ("aten::bitwise_and", [[2, 3], [2, 3]], ["bool"] * 2, ["", ""], ("float", 0, 18)),
    ("aten::__and__", [[2, 3], [3]], ["bool"] * 2, ["", ""], ("float", 0, 15)),
    ("aten::where", [[2, 3], [3], []], ["bool", BF16, BF16], ["", "", ""], ("float", 6, 6 + 6 + 2 + 12)),
    ("aten::copy_", [[2, 3], [3], []], ["float", BF16, S], ["", "", "False"], ("float", 0, 24 + 6)),
    ("aten::fill_", [[2, 3], []], ["float", S], ["", "0"], ("float", 0, 24)),
    ("aten::gelu", [[2, 0], []], ["float", ""], ["", ""], ("float", 0, 0)),
    # Sums over some or all dimensions. Positions and booleans have types of their own.
    ("aten::sum", [[2, 3, 4], [], [], []], ["float", "ScalarList", S, ""], ["", "[-1]", "False", ""], ("float", 24, 96 + 24)),
    ("aten::sum", [[2, 3, 4], [], [], []], [BF16, "ScalarList", S, S], ["", "[0, 1]", "False", "6"], ("float", 24, 48 + 16)),
    ("aten::sum", [[2, 3, 4], []], ["bool", ""], ["", ""], ("float", 0, 24 + 8)),
    ("aten::max", [[2, 3, 4], [], []], ["float", S, S], ["", "1", "False"], ("float", 24, 96 + 8 * 12)),
    ("aten::max", [[2, 3], [2, 3]], ["float", "float"], ["", ""], UNKNOWN),
    ("aten::argmax", [[2, 3], [], []], ["float", S, S], ["", "-1", "False"], ("float", 6, 24 + 16)),
    ("aten::all", [[2, 3]], ["bool"], [""], ("float", 0, 7)),
    ("aten::cumsum", [[2, 3], [], []], ["int", S, ""], ["", "0", ""], ("float", 0, 24 + 48)),
    # The selected rows are read and written.
    ("aten::index_select", [[10, 4], [], [3]], [HALF, S, "long int"], ["", "0", ""], ("float", 0, 24 + 2 * 24)),
    ("aten::embedding", [[10, 4], [3]], ["float", "long int"], ["", ""], ("float", 0, 24 + 2 * 48)),
    ("aten::gather", [[10, 4], [], [3, 4]], ["float", S, "long int"], ["", "0", ""], ("float", 0, 96 + 2 * 48)),
    # Unknown work has a reason. An operator without a formula has no row.
    ("aten::mm", None, None, None, ("operator_work.shapes_not_recorded",)),
    ("aten::mm", [[2, 3]], None, None, UNKNOWN),
    ("triton_poi_fused_add_0", [[2, 3]], ["float"], [""], ("operator_work.unrecorded_operations",)),
    ("aten::cat", [[[2], [3]], []], ["TensorList", S], ["", "0"], None),
]
# fmt: on
"""Operator, shapes, types, scalars, and expected work.

The work is math type, operations and bytes, a reason code, or None without a formula.
"""


@cache
def answers() -> dict[int, tuple[Any, ...]]:
    """Return the rows of a single macro call over all cases, because binding takes longest."""
    con = connection()
    con.execute(
        "CREATE OR REPLACE TABLE calls (call_id BIGINT, name VARCHAR, input_shapes VARCHAR, "
        "input_types VARCHAR, concrete_inputs VARCHAR)"
    )
    for place, (name, *inputs, _) in enumerate(CALLS):
        texts = [None if part is None else json.dumps(part) for part in inputs]
        con.execute("INSERT INTO calls VALUES (?, ?, ?, ?, ?)", [place, name, *texts])
    rows = con.execute(
        "SELECT call_id, elem_type, flops, moved_bytes, reason_code FROM lib._operator_work('calls')"
    )
    return {call: (reason,) if reason else tuple(found) for call, *found, reason in rows.fetchall()}


@pytest.mark.parametrize("place", range(len(CALLS)), ids=[call[0] for call in CALLS])
def test_work_of_an_operator(place: int) -> None:
    """An operator has the expected math type, operations, and bytes of inputs and outputs."""
    assert answers().get(place) == CALLS[place][-1]


@pytest.mark.parametrize(
    ("model", "bf16", "memory"),
    [
        ("NVIDIA H100 80GB HBM3", 989.4, 3.35),
        ("NVIDIA H100 PCIe", 756, 2.0),
        ("NVIDIA H100 NVL", 835.5, 3.9),
        ("NVIDIA H200", 989.4, 4.8),
        ("NVIDIA H20", 148, 4.0),
        ("NVIDIA GH200 480GB", 989.4, 4.0),
        ("NVIDIA B200", 2250, 7.7),
        ("NVIDIA GB200", 2500, 8.0),
        ("NVIDIA B300 SXM6 AC", 2250, 7.7),
        ("NVIDIA GB300", 2500, 8.0),
        ("NVIDIA A100-SXM4-80GB", 312, 2.039),
        ("NVIDIA A100 80GB PCIe", 312, 1.935),
        ("NVIDIA A100-SXM4-40GB", 312, 1.555),
        ("NVIDIA A100-PG509-200", 312, None),
        ("NVIDIA A10", 125, 0.6),
        ("NVIDIA A10G", 70, 0.6),
        ("NVIDIA L4", 121, 0.3),
        ("NVIDIA L40S", 362, 0.864),
        ("NVIDIA GeForce RTX 4090", 165.2, 1.008),
        ("Tesla V100-SXM2-32GB", None, 0.9),
        ("Tesla V100-PCIE-32GB", None, 0.9),
        ("Tesla T4", None, 0.32),
        ("AMD Instinct MI300X VF", 1307.4, 5.325),
        ("AMD Instinct MI250X", 191.5, 1.6384),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None, None),
        ("Quadro K42", None, None),
    ],
)  # fmt: skip
def test_peaks_of_a_device(model: str, bf16: float | None, memory: float | None) -> None:
    """The first pattern that matches the device name gives its peaks; unknown devices have none."""
    rows = (
        connection()
        .execute(
            "SELECT bf16_tflops, memory_tbps FROM device_peaks "
            "WHERE regexp_matches(?, pattern) ORDER BY priority LIMIT 1",
            [model],
        )
        .fetchall()
    )
    assert (rows or [(None, None)]) == [(bf16, memory)]


def test_every_peak_has_a_source() -> None:
    """Priorities are unique and in order, and each row states the source of its numbers."""
    rows = connection().execute("SELECT priority, source FROM device_peaks").fetchall()
    assert [place for place, _ in rows] == sorted({place for place, _ in rows})
    assert all("NVIDIA" in source or "AMD" in source for _, source in rows)
