"""Traces written anew: the original events as they stand, some changed, left out or added.

Counters and overlays are looked at in Perfetto or Chrome beside the events that they explain, so
the trace is streamed through, event by event, from the file that was ingested.
"""

from __future__ import annotations

from hta_sql.traces.events import Event, microseconds, trace_event
from hta_sql.traces.output import output_path
from hta_sql.traces.rewriting import Rewritten, rewrite_trace

__all__ = ["Event", "Rewritten", "microseconds", "output_path", "rewrite_trace", "trace_event"]
