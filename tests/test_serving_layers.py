"""Tests that layers are found inside the iterations of serving engines, and add up to them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from tests.serving_jobs import (
    ALL_REDUCE,
    ATTENTION,
    GEMM,
    NORM,
    Iteration,
    Kernel,
    decode,
    trace,
)

SHARED = Path(__file__).parents[2] / "shared" / "traces"
EXPERT, SPLIT, EMBEDDING, SAMPLING = (
    *("fused_moe_kernel", "flash_fwd_splitkv_combine_kernel"),
    *("embedding_kernel", "argmax_kernel"),
)
WORK = {
    NORM: "norm_ns",
    GEMM: "gemm_ns",
    ATTENTION: "attention_ns",
    SPLIT: "attention_ns",
    EXPERT: "moe_ns",
    ALL_REDUCE: "communication_ns",
}


def model(dense: int, experts: int) -> Iterator[list[Kernel]]:
    """Yield what runs before the layers, in each layer, and after them; times differ by layer."""
    yield [Kernel(EMBEDDING, 3_000)]
    for layer in range(dense + experts):
        names = [NORM, GEMM, ATTENTION, SPLIT, GEMM, ALL_REDUCE, NORM]
        names += [GEMM, GEMM] if layer < dense else [EXPERT, ALL_REDUCE]
        yield [Kernel(name, 1_000 + 10 * layer + place) for place, name in enumerate(names)]
    yield [Kernel(NORM, 700), Kernel(GEMM, 9_000), Kernel(SAMPLING, 800)]


def layers_of(folder: Path, iterations: list[Iteration]) -> list[dict[str, Any]]:
    """Return the rows of a job."""
    (folder / "rank0.json").write_text(json.dumps(trace(iterations)), encoding="utf-8")
    with hta_sql.ingest(folder / "rank0.json", folder / "job.store") as store:
        return store.run("iteration_layers").records()


@pytest.mark.parametrize(("dense", "experts"), [(4, 0), (0, 3), (3, 5), (1, 60)])
@pytest.mark.parametrize("is_graph", [True, False])
def test_each_layer_has_its_time_and_kind(
    dense: int, experts: int, is_graph: bool, tmp_path: Path
) -> None:
    """Layers, what precedes and what follows them have the planted times, by kind of work."""
    parts = list(model(dense, experts))
    kernels = tuple(kernel for part in parts for kernel in part)
    rows = layers_of(tmp_path, [decode(kernels=kernels, is_graph=is_graph) for _ in range(3)])
    assert [row["part"] for row in rows] == ["before", *["layer"] * (dense + experts), "after"]
    assert {row["layer_count"] for row in rows} == {dense + experts}
    assert {row["iteration_count"] for row in rows} == {3}
    kinds = [row["kind"] for row in rows[1:-1]]
    assert kinds == [1] * dense + [2 if dense else 1] * experts
    for row, part in zip(rows, parts, strict=True):
        wanted: Counter[str] = Counter()
        for kernel in part:
            wanted[WORK.get(kernel.name, "other_ns")] += 3 * kernel.dur_ns
        assert {name: row[name] for name in {*WORK.values(), "other_ns"} if row[name]} == wanted
        assert row["busy_ns"] == sum(wanted.values())


def test_an_iteration_without_layers_is_one_unknown_part(tmp_path: Path) -> None:
    """Kernels without attention have no layers, and their time is stated all the same."""
    kernels = (Kernel(GEMM, 500), Kernel(NORM, 100))
    (row,) = layers_of(tmp_path, [decode(kernels=kernels)])
    assert (row["part"], row["layer_count"], row["layer"], row["kind"]) == (
        *("unknown", 0),
        *(None, None),
    )
    assert (row["busy_ns"], row["gemm_ns"], row["norm_ns"]) == (600, 500, 100)


@pytest.mark.parametrize(
    ("job", "layers", "kinds"),
    [
        ("vllm_prefilldecode_piecewise", 24, [1, 23]),
        ("lightllm_decode_8rank_h200", 61, [3, 58]),
        ("lightllm_deepep_decode_8rank_h200_a", 61, [3, 58]),
        ("lightllm_deepep_decode_8rank_h200_b", 61, [3, 58]),
    ],
)
def test_layers_of_real_iterations_add_up(
    job: str, layers: int, kinds: list[int], tmp_path: Path
) -> None:
    """DeepSeek-V3 has 3 dense layers and 58 with experts; the parts sum to the iteration."""
    if not (SHARED / job).is_dir():
        pytest.skip("the shared traces are not here")
    path = min(path for path in (SHARED / job).iterdir() if "json" in path.name)
    with hta_sql.ingest(path, tmp_path / "job.store") as store:
        rows = store.run("iteration_layers").records()
        (iteration,) = store.run("iterations").records()
    assert {row["layer_count"] for row in rows} == {layers}
    counts = Counter(row["kind"] for row in rows if row["part"] == "layer")
    assert [counts[kind] for kind in sorted(counts)] == kinds
    assert sum(row["busy_ns"] for row in rows) == iteration["busy_ns"]
    assert sum(row["op_count"] for row in rows) == iteration["op_count"]
