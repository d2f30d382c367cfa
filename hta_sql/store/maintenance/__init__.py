"""Maintenance of a store: verify, repair, edits of runs, retention."""
