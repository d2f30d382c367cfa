"""Maintenance of a store: verification, repair, run edits and retention."""
