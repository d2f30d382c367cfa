"""Stores whose manifest differs from what an ingest wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hta_sql.store.disk.integrity import CHECKSUM, file_digest, with_checksum
from hta_sql.store.disk.manifest import MANIFEST


def write_manifest(store: Path, values: dict[str, Any]) -> None:
    """Replace a manifest, with current sizes and checksums of the files, and a valid checksum of its own."""
    for entry in values.get("entries", ()):
        for file in entry["files"].values():
            path = store / file["path"]
            if path.exists():
                file |= {"bytes": path.stat().st_size, "sha256": file_digest(path)}
    (store / MANIFEST).write_bytes(
        with_checksum({k: v for k, v in values.items() if k != CHECKSUM})
    )


def write_shard_file(path: Path, values: dict[str, Any]) -> None:
    """Replace the contents of a shard file."""
    path.write_bytes(with_checksum({k: v for k, v in values.items() if k != CHECKSUM}))
