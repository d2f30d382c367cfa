"""Rewrite traces: copy the original events, and change, drop or add individual events.

Counters and overlays are viewed in Perfetto or Chrome together with the events that they explain.
The ingested file is therefore streamed event by event.
"""

from __future__ import annotations

from hta_sql.traces.events import Event, microseconds, trace_event
from hta_sql.traces.output import output_path
from hta_sql.traces.rewriting import Rewritten, rewrite_trace

__all__ = ["Event", "Rewritten", "microseconds", "output_path", "rewrite_trace", "trace_event"]
