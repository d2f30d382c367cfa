"""A safe store inside a worker process: it runs queries itself, without workers."""

from __future__ import annotations

from hta_sql.store.query.trace_store import TraceStore


class HostedStore(TraceStore):
    """A safe store that runs queries in this process, which its parent supervises."""

    _isolated = False
