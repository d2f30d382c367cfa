"""Convert operator and annotation results to HTA's frames: columns, microseconds, rounding."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable
from hta_sql.hta.frames.breakdown_frames import durations
from hta_sql.text import NS

ATEN_COLUMNS = (
    "aten_op_name",
    "kernel_sequence",
    "occurrence_count",
    "avg_aten_op_launch_delay",
    "avg_runtime_delay",
)


def sequences(table: pd.DataFrame) -> pd.DataFrame:
    """Return the frame of ``get_frequent_cuda_kernel_sequences``."""
    return pd.DataFrame(
        {
            "pattern": table["pattern"],
            "count": table["occurrence_count"],
            "GPU kernel duration (us)": table["device_sum_ns"] / NS,
            "CPU op duration (us)": table["host_sum_ns"] / NS,
        }
    )


def aten_ops(
    table: pd.DataFrame, ranks: Sequence[int], keys: Sequence[str]
) -> dict[int, pd.DataFrame]:
    """Return the frames of ``get_aten_op_kernels_and_delay``, one per rank.

    Rows are sorted by ``keys``, largest first.
    """
    values = (
        table["operator_name"],
        table["kernel_sequence"],
        table["call_count"],
        (table["launch_delay_ns"] / NS).round(3),
        (table["queue_delay_ns"] / NS).round(3),
    )
    frame = pd.DataFrame(dict(zip(ATEN_COLUMNS, values, strict=True)))
    by_keys = frame.sort_values(list(keys), ascending=False, kind="stable")
    return {
        rank: by_keys[table["rank"].reindex(by_keys.index) == rank].reset_index(drop=True)
        for rank in ranks
    }


def annotation_times(table: pd.DataFrame) -> pd.DataFrame:
    """Return the frame of ``get_gpu_user_annotation_breakdown``, by rank and name."""
    frame = pd.DataFrame({**durations(table), "rank": table["rank"].astype("int64")})
    return frame.sort_values(["rank", "name"], ignore_index=True, kind="stable")


def annotated_kernels(
    events: pd.DataFrame, table: pd.DataFrame, symbols: TraceSymbolTable
) -> pd.DataFrame:
    """Return the frame of ``get_gpu_kernels_with_user_annotations``.

    The frame has the events and the annotation of each event.
    """
    frame = events.reset_index(drop=True)
    ids = table["annotation"].map(symbols.sym_index)
    frame["user_annotation"] = ids.fillna(-1).astype("int64")
    frame["annotation_path"] = table["annotation_path"]
    return frame
