"""Ingests traces into Parquet files and a manifest.

``ingest`` runs ``options`` ─▶ ``plan`` (with ``discover`` and ``fingerprints``) ─▶ ``rank``, one
job per trace, which ``running`` distributes over the machine ─▶ ``publish``. ``shards`` does the
same in two halves.
"""
