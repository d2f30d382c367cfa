"""Replays a job on its dependency graph: SQL defines nodes and edges, one pass computes times."""

TABLE = "replays"
"""Name of the derived table of replays.

The modules that compute it import numpy, and are loaded only when a replay runs.
"""
