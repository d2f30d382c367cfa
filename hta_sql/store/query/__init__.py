"""Queries of a store: TraceStore, connections, sandbox, limits, distributed execution."""
