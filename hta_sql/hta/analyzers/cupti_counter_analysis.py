"""Provide HTA's FLOP weights of CUPTI instruction counters under HTA's module path."""

from __future__ import annotations

__all__ = ["CUDA_SASS_INSTRUCTION_COUNTER_FLOPS"]

CUDA_SASS_INSTRUCTION_COUNTER_FLOPS: dict[str, float] = {
    f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum": 2 if "fma" in op else 1
    for op in ("ffma", "fmul", "fadd", "hfma", "hmul", "hadd", "dfma", "dmul", "dadd")
}
"""Floating-point operations per count, by HTA's counter name; ``flop_weight`` in SQL."""
