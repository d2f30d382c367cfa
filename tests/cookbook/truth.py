"""Answers to docs/cookbook.md, computed by hand from the times in :mod:`tests.cookbook.job`.

Steps 2 and 3 of a rank are equal; in step 1, ``gemm_fwd`` takes 100 µs longer. The backward GEMM of
rank 1 takes 240 µs instead of 120 µs, so its collectives start later. Both ranks leave a collective
together, so the collectives of rank 1 are also shorter: 50 µs each, but 170, 100 and 100 µs on rank
0.
"""

from __future__ import annotations

from typing import Any

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
COPY = "Memcpy HtoD (Pinned -> Device)"
MM = "[[64,32],[32,128]]"

ANSWERS: dict[int, list[tuple[Any, ...]]] = {
    1: [("gemm_fwd", 6, 680), ("flash_fwd", 6, 360)],
    # The elementwise kernel overlaps the last 10 µs of each collective.
    2: [
        (0, 1, 170, 160),
        (0, 2, 100, 90),
        (0, 3, 100, 90),
        (1, 1, 50, 40),
        (1, 2, 50, 40),
        (1, 3, 50, 40),
    ],
    3: [("nn.Module: Linear_0", 6, 680), ("nn.Module: Attention_0", 6, 360)],
    # Streams 24 and 20 wait for the launch in step 2; step 3 is excluded.
    4: [
        (0, 24, 880, "host_wait", COPY),
        (1, 24, 880, "host_wait", COPY),
        (1, 20, 850, "host_wait", ALL_REDUCE),
    ],
    5: [(1, 1, 120), (2, 1, 50), (3, 1, 50)],
    6: [("elementwise", 6, 60)],
    7: [(0, 24, COPY, 3, 3.0), (1, 24, COPY, 3, 3.0)],
    8: [(MM, 6, 3 * 120 + 3 * 240)],
    9: [(0, 580, 410), (1, 580, 480)],
    10: [(0, 3, 1000, 1000), (1, 3, 1000, 1000)],
    11: [("gemm_bwd", 6, 1080, 36.7), ("gemm_fwd", 6, 680, 23.1), (ALL_REDUCE, 6, 520, 17.7)],
    # Steps 1 and 2 start at 60 and end at 1610.
    12: [(0, 1550, 580, 680, 250), (1, 1550, 510, 920, 80)],
    13: [("aten::mm", 1080), ("aten::addmm", 680), ("c10d::allreduce_", 520)],
    14: [(1, 1, ALL_REDUCE, 160), (0, 1, "elementwise", 136), (1, 1, "elementwise", 136)],
    15: [(0, "cudaDeviceSynchronize", 3, 600), (1, "cudaDeviceSynchronize", 3, 600)],
    16: [("(none)", 1080 + 520 + 120), ("forward", 1040), ("optimizer", 180)],
    17: [("gemm_bwd", 6, 1080)],
    18: [(0, 370, 220), (1, 150, 0)],
    19: [(number, "all_reduce", 1.0, 20.0) for number in (1, 2, 3)],
    20: [
        (0, 1, 570, 650),
        (0, 2, 400, 550),
        (0, 3, 400, 550),
        (1, 1, 570, 650),
        (1, 2, 470, 550),
        (1, 3, 470, 550),
    ],
    21: [(0, 1, 1340), (0, 2, 30), (1, 1, 1480), (1, 2, 30)],
    22: [("gemm_fwd", 680, 440, -240)],
    23: [
        (0, "cudaLaunchKernel"),
        (1, "aten::addmm"),
        (2, "aten::linear"),
        (3, "nn.Module: Linear_0"),
        (4, "forward"),
        (5, "ProfilerStep#2"),
    ],
    24: [(0, 84, 0), (1, 84, 0)],
    25: [("default_pg", "allreduce", 6, 2, 3.0)],
    # The memory is freed 600 µs later, outside of the allocating module and of the backward pass.
    26: [(rank, "aten::addmm", "Linear_0", None, "activation", 8192, 100.0) for rank in (0, 1)],
    27: [("aten::mm", 384), ("aten::scaled_dot_product_attention", 384), ("aten::add_", 276)],
    28: [(0, 120, 120, 120), (1, 240, 240, 240)],
    29: [
        ("cudaDeviceSynchronize", 6, 1200),
        ("cudaLaunchKernel", 30, 204),
        ("cudaMemcpyAsync", 6, 90),
    ],
    30: [("default", 2300), ("metadata", 520), ("category", 120)],
    # Steps 1 and 2 of two ranks.
    31: [("nn.Module: Linear_0", 520, 320), ("nn.Module: Attention_0", 240, 360)],
    # 2 x 4096 ** 3 operations at 989.4 and 1307.4 TFLOP/s; moving three 32 MB matrices takes 30 us.
    32: [
        ("H100", 2 * 4096**3, 3 * 4096**2 * 2, 138.9),
        ("MI300X", 2 * 4096**3, 3 * 4096**2 * 2, 105.1),
    ],
}
