"""Stores whose manifest says something else than an ingest wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hta_sql.store.disk.integrity import CHECKSUM, file_digest, with_checksum
from hta_sql.store.disk.manifest import MANIFEST


def write_manifest(store: Path, values: dict[str, Any]) -> None:
    """Replace a manifest, with the sizes and checksums of files as they are now, and its own."""
    for entry in values.get("entries", ()):
        for file in entry["files"].values():
            path = store / file["path"]
            if path.exists():
                file |= {"bytes": path.stat().st_size, "sha256": file_digest(path)}
    (store / MANIFEST).write_bytes(
        with_checksum({k: v for k, v in values.items() if k != CHECKSUM})
    )


def write_shard_file(path: Path, values: dict[str, Any]) -> None:
    """Replace what a shard says."""
    path.write_bytes(with_checksum({k: v for k, v in values.items() if k != CHECKSUM}))
