"""Exports of a store: files, sheets, a DuckDB file, comparisons, gates."""
