"""Helpers that rewrite the manifest of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hta_sql.store.disk.digests import CHECKSUM, file_digest, with_checksum
from hta_sql.store.disk.manifest import MANIFEST


def write_manifest(store: Path, values: dict[str, Any]) -> None:
    """Replace the manifest of a store, and give it a valid checksum.

    File sizes and checksums in ``values`` are updated to match the files on disk.
    """
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
