"""Compares runs of a job with each other, step by step and as a gate for CI."""
