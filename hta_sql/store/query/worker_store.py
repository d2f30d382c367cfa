"""A safe store inside of a process that may die: it runs queries here, not in workers of its own."""

from __future__ import annotations

from hta_sql.store.query.trace_store import TraceStore


class HostedStore(TraceStore):
    """A safe store that runs queries in this process, which its parent supervises."""

    _isolated = False
