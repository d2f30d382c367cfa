"""Tests that special_operators counts the right names and no similar or enclosing operators."""

from __future__ import annotations

import duckdb
import pytest

from hta_sql.library.objects import load_library

KINDS = {
    "Optimizer.step#AdamW.step": "optimizer step",
    "Optimizer.zero_grad#SGD.zero_grad": "gradients zeroed",
    "aten::_foreach_norm": "gradient norm",
    "torch/nn/utils/clip_grad.py(180): clip_grad_norm_": "gradient norm",
    "c10d::allreduce_": "all-reduce",
    "c10d::allreduce_coalesced_": "all-reduce",
    "c10d::_allgather_base_": "all-gather",
    "c10d::allgather_into_tensor_coalesced_": "all-gather",
    "c10d::_reduce_scatter_base_": "reduce-scatter",
    "c10d::alltoall_base_": "all-to-all",
    "c10d::broadcast_": "broadcast",
    "c10d::send": "send",
    "c10d::recv_": "receive",
    "c10d::recv_any_source_": "receive",
    "c10d::barrier": "barrier",
    "aten::_local_scalar_dense": "value read by the host",
    "aten::nonzero": "size known late",
    "cudaDeviceSynchronize": "host synchronizes",
    "hipStreamSynchronize": "host synchronizes",
    "aclrtSynchronizeStream": "host synchronizes",
    "cudaMalloc": "device memory allocated",
    "cuMemCreate": "device memory allocated",
    "hipFree": "device memory freed",
    "cudaHostAlloc": "pinned memory allocated",
    "aten::isnan": "not-a-number check",
    "aten::_amp_foreach_non_finite_check_and_unscale_": "not-a-number check",
    "CheckpointFunctionBackward": "recomputation",
    "torch/utils/checkpoint.py(1523): recompute_fn": "recomputation",
    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__": "data loaded",
    "Memcpy HtoD (Pageable -> Device)": "copy from pageable memory",
    "cuModuleLoadData": "module loaded",
    "cuLibraryLoadData": "module loaded",
    "<built-in function collect>": "garbage collection",
    # Operators that enclose one of the above, or names that look similar.
    "aten::item": None,
    "autograd::engine::evaluate_function: CheckpointFunctionBackward": None,
    "Memcpy HtoD (Pinned -> Device)": None,
    "cudaStreamWaitEvent": None,
    "aten::isnan_": None,
}


@pytest.fixture(scope="module")
def kinds() -> dict[str, list[str]]:
    """Return the kinds of each name that has any."""
    macro = next(m for m in load_library().macros if m.name == "_special_operator_kinds")
    with duckdb.connect(":memory:") as con:
        con.execute("CREATE SCHEMA lib")
        con.execute(macro.text)
        con.execute("CREATE TABLE named (name VARCHAR)")
        con.executemany("INSERT INTO named VALUES ($1)", [[name] for name in KINDS])
        rows = con.execute("SELECT name, kind FROM lib._special_operator_kinds('named')").fetchall()
    found: dict[str, list[str]] = {}
    for name, kind in rows:
        found.setdefault(name, []).append(kind)
    return found


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_a_name_is_of_one_kind(kinds: dict[str, list[str]], name: str, kind: str | None) -> None:
    """Each name has at most one kind; enclosing operators have none, or they would count twice."""
    assert kinds.get(name, []) == ([kind] if kind else [])
