"""Maintenance of a store: verification, run edits and retention."""
