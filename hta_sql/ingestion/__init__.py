"""Ingests traces into Parquet files and a manifest.

``ingest`` runs ``options`` ─▶ ``plan`` (with ``discover`` and ``fingerprints``) ─▶ ``rank``, one
job per trace, which ``running`` distributes over the machine ─▶ ``publish``. With shards, several
jobs read the traces, and one later step publishes all ranks.
"""
