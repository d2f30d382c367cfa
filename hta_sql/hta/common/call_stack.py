"""Call stacks under HTA's older path; the same trees are in ``trace_call_graph``."""

from __future__ import annotations

import pandas as pd

from hta_sql.hta.common import trace_call_graph
from hta_sql.hta.common.trace_call_stack import (
    NON_EXISTENT_NODE_INDEX,
    NULL_NODE_INDEX,
    CallStackGraph,
    CallStackIdentity,
    CallStackNode,
)
from hta_sql.hta.common.types import DeviceType, infer_device_type

__all__ = [
    "NON_EXISTENT_NODE_INDEX",
    "NULL_NODE_INDEX",
    "CallGraph",
    "CallStackGraph",
    "CallStackIdentity",
    "CallStackNode",
    "DeviceType",
    "infer_device_type",
]


class CallGraph(trace_call_graph.CallGraph):
    """Call trees of some ranks: :class:`hta_sql.hta.common.trace_call_graph.CallGraph`."""

    def get_stack_of_node(
        self, node_id: int, rank: int | None = None, skip_ancestors: bool = False
    ) -> pd.DataFrame:
        """Return an event with everything below it and, unless skipped, above it, by start.

        Raises:
            ParameterError: The event is in no call tree.
        """
        return super().get_stack_of_node(node_id, rank, skip_ancestors)
