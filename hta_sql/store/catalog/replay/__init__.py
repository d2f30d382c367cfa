"""A job run again on a graph of its operations: SQL defines nodes and edges, one pass replays them."""

TABLE = "replays"
"""Name of the derived table of replays; its modules import numpy, and load when a replay runs."""
