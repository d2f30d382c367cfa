"""Stores of ingested traces: disk format, catalog, queries and maintenance."""

STORE_NAME = ".hta_sql"
"""Default name of the store inside a folder of traces.

It is hidden, so that it is never mistaken for a trace.
"""

TRACES = "traces"
"""Folder of a store for the traces that are recorded into it."""
