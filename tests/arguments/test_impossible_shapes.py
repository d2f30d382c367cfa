"""If tensor sizes are impossible, analyses succeed and the work of operators is unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest

import hta_sql

LARGE = 10**12

SHAPES: tuple[list[Any], ...] = (
    [[LARGE] * 2] * 3,
    [[LARGE] * 4] * 3,
    [[LARGE] * 8, [LARGE] * 4, [LARGE]],
    [[0, LARGE], [LARGE, 0]],
    [[[LARGE] * 2, [LARGE]], [5]],
    [[LARGE] * 3] * 3,
)

SCALARS = ("", "[1, 1]", str(1 << 62), "[9223372036854775807, 2]", "[0, 0]", "1e400")

OPERATORS = (
    *("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear", "aten::matmul"),
    *(
        "aten::mv",
        "aten::dot",
        "aten::mul",
        "aten::add",
        "aten::copy_",
        "aten::sum",
        "aten::cumsum",
    ),
    *("aten::conv2d", "aten::convolution", "aten::convolution_backward", "aten::batch_norm"),
    *("aten::_scaled_dot_product_flash_attention", "aten::_softmax", "aten::native_layer_norm"),
    *("aten::embedding", "aten::index_select", "aten::gather"),
)

READING_SHAPES = (
    *("operator_table", "mfu", "roofline", "kpis", "kpi_trends", "findings", "collectives"),
    *("collective_waits", "all_to_all_traffic", "expert_load", "process_group_costs", "advice"),
)


def traced_operator(name: str, ts: int, args: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of an operator that launches one kernel."""
    host = {"ph": "X", "pid": 1, "tid": 1}
    link = {"External id": ts, "correlation": ts}
    launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts + 1, "dur": 1}
    kernel = {"ph": "X", "cat": "kernel", "name": f"gemm_{ts}", "pid": 0, "tid": 7, "dur": 2}
    return [
        {**host, "cat": "cpu_op", "name": name, "ts": ts, "dur": 5, "args": {**args, **link}},
        {**host, **launch, "args": link},
        {**kernel, "ts": ts + 2, "args": {**link, "stream": 7, "device": 0}},
    ]


def exchange(ts: int) -> dict[str, Any]:
    """Return an all-to-all kernel with an impossible number of elements."""
    args = {
        "Collective name": "all_to_allv",
        "dtype": "Float",
        "Group size": 4,
        "stream": 9,
        "Process Group Name": "0",
        "Process Group Ranks": "[0, 1, 2, 3]",
        "In msg nelems": 1 << 50,
        "Out msg nelems": 1 << 50,
        "In split size": f"[{10**11}, {10**11}, 1, 2]",
        "Out split size": "[0, 0, 0, 0]",
    }
    name = "ncclDevKernel_SendRecv"
    event = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 9, "ts": ts, "dur": 2}
    return {**event, "args": args}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> hta_sql.TraceStore:
    """Ingest all operators that have a work formula, each with all impossible shapes."""
    events: list[dict[str, Any]] = []
    for name in OPERATORS:
        for shapes in SHAPES:
            for scalars in (None, SCALARS):
                args = {"Input Dims": shapes, "Input type": ["float"] * len(shapes)}
                more = {"Concrete Inputs": list(scalars)} if scalars else {}
                events += traced_operator(name, 10 * len(events), {**args, **more})
    for shapes in SHAPES:
        event = {"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 1, "tid": 2}
        times = {"ts": 10 * len(events), "dur": 2}
        events.append({**event, **times, "args": {"Input Dims": shapes, "Input type": ["float"]}})
    events += [exchange(10 * (len(events) + n)) for n in range(4)]
    device = {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 1 << 36, "numSms": 132}
    job = {"distributedInfo": {"rank": 0, "world_size": 4}, "deviceProperties": [device]}
    folder = tmp_path_factory.mktemp("impossible")
    (folder / "rank0.json").write_text(json.dumps({"traceEvents": events, **job}))
    return hta_sql.ingest(folder / "rank0.json", folder / "job.store")


@pytest.mark.parametrize("analysis", READING_SHAPES)
def test_an_analysis_answers_on_impossible_shapes(analysis: str, store: hta_sql.TraceStore) -> None:
    """Each analysis succeeds without an overflow or a division by zero."""
    store.run(analysis).rows()


def test_work_beyond_64_bits_is_unknown(store: hta_sql.TraceStore) -> None:
    """The FLOPs of an operator are NULL if they exceed 64 bits."""
    rows = store.run("operator_table", by_shapes=True).records()
    products = [row for row in rows if row["name"] == "aten::mm" and str(LARGE) in str(row)]
    assert products
    assert all(row["flops"] in (None, 0) for row in products)
