"""The profiler steps of a Trace as a frame."""

from __future__ import annotations

import pandas as pd

from hta_sql.hta.common.trace import Trace
from hta_sql.hta.frames.breakdown_frames import NS

__all__ = ["extract_iteration_info"]


def extract_iteration_info(trace: Trace) -> pd.DataFrame:
    """List the profiler steps of each rank.

    Args:
        trace: An open trace; the last step is there where it is included.

    Returns:
        ``rank, iter, ts, dur, end``, by rank and step; times in µs since the first event.
    """
    tables = [trace.run("profiler_steps", rank) for rank in trace.get_ranks()]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    return pd.DataFrame(
        {
            "rank": table["rank"].astype("int64"),
            "iter": table["step"].astype("int64"),
            "ts": table["ts"] / NS,
            "dur": table["dur"] / NS,
            "end": (table["ts"] + table["dur"]) / NS,
        }
    )
