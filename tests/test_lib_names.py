"""Tests of the sql/lib macros that interpret names, and of the quantiles."""

from __future__ import annotations

import math
from functools import cache

import duckdb
import pytest

from tests.macros import engine_with, value_in

MACROS = ("counted_stack", "_group_kind", "_scalar_type_bytes", "stable_name", "student_t")

GROUPS = {
    "dp": (
        "DATA_PARALLEL_GROUP_WITH_CP EXPERT_DATA_PARALLEL_GROUP data dp mesh_dp mesh_dp_shard_cp ddp edp "
        "fsdp efsdp hsdp mesh_replicate shard zero my_fsdp_tp dp2 tp.dp"
    ),
    "tp": "TENSOR_MODEL_PARALLEL_GROUP EXPERT_TENSOR_PARALLEL_GROUP mesh_tp tp:0 etp tensor tensor_and tp_model",
    "pp": "PIPELINE_MODEL_PARALLEL_GROUP EMBEDDING_GROUP pipeline pp mesh_pp pp_cp",
    "cp": (
        "CONTEXT_PARALLEL_GROUP HIERARCHICAL_CONTEXT_PARALLEL_GROUPS sequence_parallel ulysses cp sp ring "
        "expert_cp"
    ),
    "ep": "EXPERT_MODEL_PARALLEL_GROUP ep_size_4 mesh_ep moe expert",
    "mp": (
        "TENSOR_AND_DATA_PARALLEL_GROUP EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP mesh_tp_cp "
        "tp_dp tp_ep tp_pp expert_tensor_and_model expert_tensor_model tensor_model_pipeline "
        "MODEL_PARALLEL_GROUP mp_group model"
    ),
    None: "default_pg undefined updated stpx cps deeper models ampere rings embeddings",
}

STEADY = [
    ("f at 0x7f01", "f at 0x"),
    ("f at 0xABCDEF0123, 0x9876", "f at 0x, 0x"),
    ("f at 0x7f0", "f at 0x7f0"),
    ("/usr/lib/python3/site-packages/torch/nn.py(12): f", "torch/nn.py: f"),
    ("/a/dist-packages/b.py(4): g", "b.py: g"),
    ("/a/packages/b.py(4): c.py(5)", "/a/packages/b.py: c.py"),
    ("b.py: g", "b.py: g"),
    ("## Call CompiledFxGraph f0123456789abcdefghij ##", "## Call CompiledFxGraph ##"),
    ("CompiledFxGraph f0123456789abcdefghi", "CompiledFxGraph f0123456789abcdefghi"),
    ("CompiledFxGraph", "CompiledFxGraph"),
    ("Torch-Compiled Region: 0/1", "Torch-Compiled Region"),
    ("Torch-Compiled Region: main", "Torch-Compiled Region: main"),
    ("a Torch-Compiled Region: 0/1", "a Torch-Compiled Region: 0/1"),
    ("ProfilerStep#12", "ProfilerStep"),
    ("ProfilerStep # 3", "ProfilerStep"),
    ("ProfilerStep#12b", "ProfilerStep#12b"),
    ("a ProfilerStep#12", "a ProfilerStep#12"),
    ("triton_poi_fused_add_12", "triton_poi_fused_add"),
    ("triton_red_fused_sum_0d1d2de", "triton_red_fused_sum"),
    ("triton_red_fused_sum_0e", "triton_red_fused_sum_0e"),
    ("a_triton_poi_fused_add_12", "a_triton_poi_fused_add_12"),
    ("autograd: MmBackward0", "autograd: MmBackward"),
    ("MmBackward12", "MmBackward"),
    ("Backward2d", "Backward2d"),
    ("nn.Module: Linear_12", "nn.Module: Linear"),
    ("a nn.Module: Linear_12", "a nn.Module: Linear_12"),
    ("nn.Module: Linear_a", "nn.Module: Linear_a"),
]

TESTED = "torch/testing/_internal/common_utils.py(9): "

KEPT = (
    *("train.py(1): step", "torch/autograd/__init__.py(3): grad", "torch/tensor.py(2): add"),
    *(f"{TESTED}other", "my.py(1): prof_callable", "my.py(2): backward", "_make_grads"),
)
"""Stack frames that torch shows."""

LEFT_OUT = (
    *("torch/autograd/__init__.py(3): backward", "torch/autograd/__init__.py(4): _make_grads"),
    "torch/tensor.py(2): backward",
    *(f"{TESTED}prof_callable", f"{TESTED}prof_func_call", f"{TESTED}prof_meth_call"),
)

TYPES = {
    1: "0 1 11 12 13 23 24 25 26",
    2: "2 5 15",
    4: "3 6 8 14",
    8: "4 7 9",
    16: "10",
    None: "16 17 22 -1 Float",
}
"""Type numbers of c10/core/ScalarType.h by size in bytes; the size of packed types is unknown."""


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """Return one shared engine with the macros."""
    return engine_with(MACROS)


def value(call: str, *values: object) -> object:
    """Evaluate a macro call and return its value."""
    return value_in(connection(), call, values)


@pytest.mark.parametrize("kind", GROUPS)
def test_kinds_of_groups(kind: str | None) -> None:
    """Only whole words in the name of a process group determine its kind."""
    names = GROUPS[kind].split()
    assert {name: value("lib._group_kind(?)", name) for name in names} == dict.fromkeys(names, kind)


@pytest.mark.parametrize(("raw", "steady"), STEADY)
def test_names_without_what_changes_from_capture_to_capture(raw: str, steady: str) -> None:
    """Parts of a name that differ between captures, such as addresses and lines, are removed."""
    assert value("lib.stable_name(?)", raw) == steady


@pytest.mark.parametrize("frame", LEFT_OUT)
def test_frames_that_torch_leaves_out(frame: str) -> None:
    """Frames that start the backward pass or belong to torch's tests are omitted, as in torch."""
    assert value("lib.counted_stack(?)", f"a;{frame};b") == ["a", "b"]


def test_frames_that_torch_shows() -> None:
    """All other frames are returned in order, and an empty stack has no frames."""
    assert value("lib.counted_stack(?)", ";".join([*KEPT, ""])) == list(KEPT)
    assert value("lib.counted_stack(NULL)") == []


@pytest.mark.parametrize("size", TYPES)
def test_bytes_of_a_numbered_type(size: int | None) -> None:
    """Each type number has the right size in bytes."""
    numbers = TYPES[size].split()
    found = {number: value("lib._scalar_type_bytes(?)", number) for number in numbers}
    assert found == dict.fromkeys(numbers, size)


def within(t: float, freedom: int) -> float:
    """Return the probability that Student's distribution assigns to [-t, t].

    It is computed as a finite series.
    """
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    term, total = (math.cos(angle), 0.0) if odd else (1.0, 0.0)
    for power in range(1 + odd, freedom, 2):
        total += term
        term *= power / (power + 1) * math.cos(angle) ** 2
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total


@pytest.mark.parametrize(("of_many", "share"), [(True, 0.999), (False, 0.99)])
def test_quantiles_of_students_distribution(of_many: bool, share: float) -> None:
    """Quantiles are right to three decimals, and those of 30 degrees of freedom apply above 30."""
    for freedom in range(1, 31):
        t = value("lib.student_t(?, ?)", of_many, freedom)
        assert isinstance(t, float)
        assert within(t - 0.00051, freedom) < share < within(t + 0.00051, freedom), freedom
    assert value("lib.student_t(?, 31)", of_many) == value("lib.student_t(?, 30)", of_many)
    assert value("lib.student_t(?, 0)", of_many) is None
    assert value("lib.student_t(?, 0.5)", of_many) is None
