"""Records traces of ``torch.profiler`` into a store while a job trains."""

from __future__ import annotations

from hta_sql.torch.handler import trace_handler

__all__ = ["trace_handler"]
