"""Redacted copies of stores and traces: private names, paths, hosts and annotations are removed."""
