"""Return hardware counters of kernels together with the operators that launched them."""

from __future__ import annotations

import json
import logging

import pandas as pd

from hta_sql.hta.common.trace import Trace
from hta_sql.hta.common.trace_call_graph import CALL_GRAPH_DEFAULTS
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
            ranks: Ranks to analyze; default: rank 0, or the first rank if 0 does not exist.
            visualize: Whether to show the chart; None: in a notebook only.

        Returns:
            A frame for each rank with CUPTI ranges, with a row per range in order of time. Columns:
            those of ``t.get_trace(rank)`` with names and categories as strings; those of a call
            graph (with defaults, as ranges are not in call trees); one per counter;
            ``index_runtime`` (event of the launch); ``op_stack`` (list, outermost first);
            ``top_level_op, bottom_level_op``. A range whose launch or operator is unknown has an
            empty list and None.

        Raises:
            RankError: A rank does not exist.
        """
        wanted = self._default_ranks(ranks)
        result = self.result("cupti_counters_by_operator_v1", wanted)
        show(result, visualize, self.store.path)
        table = result.df()
        trace = Trace(job=self)
        parts = {rank: table[table["rank"] == rank] for rank in wanted}
        found = [_frame(trace, rank, part) for rank, part in parts.items() if len(part)]
        if not found:
            log.warning("There are no CUPTI profiler ranges in the traces of ranks %s.", wanted)
        return found


def _frame(trace: Trace, rank: int, table: pd.DataFrame) -> pd.DataFrame:
    """Convert a table with a row per counter to a frame with a row per range."""
    ranges = table.drop_duplicates("event_id").set_index("event_id")
    frame = trace.events(rank, ranges.index)
    trace.symbol_table.decode_df(frame)
    for column, default in CALL_GRAPH_DEFAULTS.items():
        frame[column] = default
    named = table[table["counter"].notna()]
    values = named.pivot_table(index="event_id", columns="counter", values="value", dropna=False)
    for counter in values.columns:
        counts = values[counter].reindex(ranges.index)
        is_whole = bool(counts.notna().all()) and bool((counts % 1 == 0).all())
        frame[counter] = counts.astype("int64") if is_whole else counts
    frame["index_runtime"] = ranges["launch_id"].astype("Int64")
    frame["op_stack"] = [
        json.loads(text) if isinstance(text, str) else [] for text in ranges["op_stack"]
    ]
    for name in ("top_level_op", "bottom_level_op"):
        operators = ranges[name].astype(object)
        frame[name] = operators.where(operators.notna(), None)
    return frame.reset_index(drop=True)
