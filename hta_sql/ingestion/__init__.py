"""Traces ─▶ Parquet and manifest.

``ingest`` follows one way: ``options`` ─▶ ``plan`` (with ``discover`` and ``fingerprints``) ─▶ ``rank``,
one job per trace, which ``running`` spreads over the machine ─▶ ``publish``. ``shards`` goes the same
way in two halves.
"""
