"""Maintenance of a store: verify, repair, edit runs, retention."""
