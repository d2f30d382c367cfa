"""Where an ingest runs: processes, executors, side by side."""
