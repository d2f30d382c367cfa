"""Files of a job that are not traces: dumps, snapshots, execution traces, kernel information."""
