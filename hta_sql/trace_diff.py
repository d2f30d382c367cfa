"""Provide :mod:`hta_sql.hta.trace_diff` as ``hta_sql.trace_diff``."""

from __future__ import annotations

from hta_sql.hta.trace_diff import DeviceType, LabeledTrace, TraceDiff

__all__ = ["DeviceType", "LabeledTrace", "TraceDiff"]
