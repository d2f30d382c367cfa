"""A job run again on a graph of its operations: SQL defines nodes and edges, one pass replays them."""

from hta_sql.store.catalog.replay.rows import TABLE, replay_rows, replays_of_all

__all__ = ["TABLE", "replay_rows", "replays_of_all"]
