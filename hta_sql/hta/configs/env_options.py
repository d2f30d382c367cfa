"""The environment variables that HTA's users set, and which of them mean something here."""

from __future__ import annotations

import os

from hta_sql.hta.methods.critical_path import ADD_LAUNCH_EDGES, SHOW_LAUNCH_EDGES

__all__ = [
    "CP_LAUNCH_EDGE_ENV",
    "CP_LAUNCH_EDGE_SHOW_ENV",
    "CP_STRICT_NEG_WEIGHT_CHECK_ENV",
    "HTA_DISABLE_CG_DEPTH_ENV",
    "HTA_DISABLE_NS_ROUNDING_ENV",
    "critical_path_add_zero_weight_launch_edges",
    "critical_path_show_zero_weight_launch_edges",
    "critical_path_strict_negative_weight_check",
    "disable_call_graph_depth",
    "disable_ns_rounding",
    "get_options",
]

CP_LAUNCH_EDGE_ENV = ADD_LAUNCH_EDGES
CP_LAUNCH_EDGE_SHOW_ENV = SHOW_LAUNCH_EDGES
HTA_DISABLE_NS_ROUNDING_ENV = "HTA_DISABLE_NS_ROUNDING"
"""Without effect: times are exact in any case."""
HTA_DISABLE_CG_DEPTH_ENV = "HTA_DISABLE_CG_DEPTH"
"""Without effect: the depth costs nothing."""
CP_STRICT_NEG_WEIGHT_CHECK_ENV = "CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS"
"""Without effect: no edge has a negative weight."""


def disable_ns_rounding() -> bool:
    """Say whether HTA would keep nanoseconds; hta_sql does in any case."""
    return _is_set(HTA_DISABLE_NS_ROUNDING_ENV)


def disable_call_graph_depth() -> bool:
    """Say whether HTA would leave out the depth of call stacks."""
    return _is_set(HTA_DISABLE_CG_DEPTH_ENV)


def critical_path_add_zero_weight_launch_edges() -> bool:
    """Say whether every kernel depends on its launch in a critical path."""
    return _is_set(CP_LAUNCH_EDGE_ENV)


def critical_path_show_zero_weight_launch_edges() -> bool:
    """Say whether those edges are drawn into a trace."""
    return _is_set(CP_LAUNCH_EDGE_SHOW_ENV)


def critical_path_strict_negative_weight_check() -> bool:
    """Say whether HTA would fail at an edge of negative weight."""
    return _is_set(CP_STRICT_NEG_WEIGHT_CHECK_ENV)


def get_options() -> str:
    """Return the variables and their values, one a line."""
    names = (
        *(HTA_DISABLE_NS_ROUNDING_ENV, HTA_DISABLE_CG_DEPTH_ENV, CP_LAUNCH_EDGE_ENV),
        *(CP_LAUNCH_EDGE_SHOW_ENV, CP_STRICT_NEG_WEIGHT_CHECK_ENV),
    )
    return "\n".join(f"{name}={os.environ.get(name, 'unset')}" for name in names)


def _is_set(name: str) -> bool:
    return os.environ.get(name) == "1"
