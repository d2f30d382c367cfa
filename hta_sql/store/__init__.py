"""Stores: opened, asked and written; names and times that others have to know without opening one."""

STORE_NAME = ".hta_sql"
"""Store of a folder of traces, inside of it, where nobody says otherwise; hidden, so that it is never
taken for a trace."""

LOCK_TIMEOUT_S = 60.0
"""Time to wait for another ingest that is writing a store."""
