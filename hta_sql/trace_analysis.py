"""Provide :mod:`hta_sql.hta.trace_analysis` as ``hta_sql.trace_analysis``."""

from __future__ import annotations

from hta_sql.hta.trace_analysis import TimeSeriesTypes, TraceAnalysis

__all__ = ["TimeSeriesTypes", "TraceAnalysis"]
