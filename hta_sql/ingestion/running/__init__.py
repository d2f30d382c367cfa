"""Runs the jobs of an ingest: processes, executors, threads."""
