"""Export a store to files, sheets or DuckDB, also redacted."""
