"""Stores: opened, asked and written; the name that others have to know without opening one."""

STORE_NAME = ".hta_sql"
"""Store of a folder of traces, inside of it, where nobody says otherwise; hidden, so that it is never
taken for a trace."""
