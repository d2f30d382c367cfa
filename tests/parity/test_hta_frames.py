"""Frames equal HTA's for the same public traces."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hta_sql.hta.common.trace import Trace
from hta_sql.hta.configs.parser_config import AVAILABLE_ARGS, ParserConfig
from hta_sql.hta.trace_analysis import TraceAnalysis

TraceOf = Callable[[str], Trace]

ARGUMENTS = {
    "registers_per_thread": 209373,
    "est_occupancy": 91532,
    "shared_memory": 170756496,
    "cbid": -11813,
    "sequence": 8631304,
    "in_msg_nelems": 1548741888,
    "group_size": 896,
    "fwd_thread_id": -11042,
    "ev_idx": 40047823,
    "context": -5979,
    "queued": -8896,
}
"""Sums over the operators and kernels of rank 0 of nanogpt_8rank_h100, from HTA's ARGS_COMPLETE."""

ANNOTATED = {
    "dur": 1438.279,
    "correlation": 6310448,
    "bytes": 2752311,
    "memory_bw_gbps": 1425.31694847125,
    "wait_on_stream": -245,
    "external_id": 271587,
    "index_correlation": 714448,
    "iteration": 1470,
}
"""Sums over HTA's frame of annotated kernels for rank 0 of megatron_tp2_v100."""


def test_arguments(trace_of: TraceOf) -> None:
    """All of HTA's argument columns are present, with the recorded sums."""
    trace = trace_of("nanogpt_8rank_h100")
    complete = Trace(job=trace.job, parser_config=ParserConfig(list(AVAILABLE_ARGS.values())))
    frame, symbols = complete.get_trace(0), complete.symbol_table
    categories = [symbols.sym_index[name] for name in ("cpu_op", "kernel")]
    chosen = frame[frame["cat"].isin(categories)]
    assert len(chosen) == 11813
    assert {column: int(chosen[column].sum()) for column in ARGUMENTS} == ARGUMENTS
    assert chosen["warps_per_sm"].sum() == pytest.approx(673556.021129, abs=1e-6)
    texts = chosen[["grid", "block", "concrete_inputs", "kernel_backend"]].astype(str)
    assert texts.nunique().tolist() == [45, 10, 569, 2]


def test_annotated_kernels(trace_of: TraceOf) -> None:
    """The frame has HTA's rows, columns and sums."""
    with TraceAnalysis(store=trace_of("megatron_tp2_v100").job.store.path) as analysis:
        frame = analysis.get_gpu_kernels_with_user_annotations(0)
    assert frame is not None
    assert len(frame) == 245
    assert {c: frame[c].sum() for c in ANNOTATED} == pytest.approx(ANNOTATED, abs=1e-6)
    assert set(frame["input_dims"]) == {"-1"}
