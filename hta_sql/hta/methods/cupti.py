"""Hardware counters of kernels, with the operators that launched them."""

from __future__ import annotations

import json
import logging

import pandas as pd

from hta_sql.hta.frames.breakdown_frames import NS
from hta_sql.hta.methods.job import Job
from hta_sql.hta.methods.showing import show

log = logging.getLogger(__name__)


class Cupti(Job):
    """Methods of TraceAnalysis: CUPTI counters."""

    def get_cupti_counter_data_with_operators(
        self, ranks: list[int] | None = None, *, visualize: bool | None = None
    ) -> list[pd.DataFrame]:
        """Return the counters of each kernel and the operators that launched it.

        Args:
            ranks: Ranks; default: rank 0, or the first one there is.
            visualize: Whether to show the chart; None: in a notebook only.

        Returns:
            A frame for each rank with CUPTI ranges, a row per range in order of time: ``index, cat,
            name, ts`` (µs since the run's first event), ``dur`` (µs), a column per counter,
            ``index_runtime`` (event of the launch), ``op_stack`` (list, outermost first),
            ``top_level_op, bottom_level_op``. A range whose launch or operator is unknown has an
            empty list and None.

        Raises:
            RankError: No such rank.
        """
        wanted = self._default_ranks(ranks)
        result = self._result("cupti_counters_by_operator", wanted)
        show(result, visualize, self.store.path)
        table = result.df()
        frames = [_frame(table[table["rank"] == rank]) for rank in wanted]
        found = [frame for frame in frames if len(frame)]
        if not found:
            log.warning("There are no CUPTI profiler ranges in the traces of ranks %s.", wanted)
        return found


def _frame(table: pd.DataFrame) -> pd.DataFrame:
    """Turn a row per counter into a row per range."""
    ranges = table.drop_duplicates("event_id").set_index("event_id")
    named = table[table["counter"].notna()]
    values = named.pivot_table(index="event_id", columns="counter", values="value", dropna=False)
    frame = pd.DataFrame(
        {
            "index": ranges.index,
            "cat": "cuda_profiler_range",
            "name": ranges["name"],
            "ts": ranges["ts"] / NS,
            "dur": ranges["dur"] / NS,
        },
        index=ranges.index,
    )
    for counter in values.columns:
        column = values[counter].reindex(ranges.index)
        is_whole = bool(column.notna().all()) and bool((column % 1 == 0).all())
        frame[counter] = column.astype("int64") if is_whole else column
    frame["index_runtime"] = ranges["launch_id"].astype("Int64")
    frame["op_stack"] = [
        json.loads(text) if isinstance(text, str) else [] for text in ranges["op_stack"]
    ]
    for name in ("top_level_op", "bottom_level_op"):
        operators = ranges[name].astype(object)
        frame[name] = operators.where(operators.notna(), None)
    return frame.reset_index(drop=True)
