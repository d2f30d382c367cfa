"""Checksums: of files, and of JSON that carries that of its own bytes. One flipped bit is noticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

SEAL = "sha256"

HASHED_BYTES = 1 << 17
"""Read at once: hashing lets other threads run meanwhile."""

_OPEN = "0" * 64
"""What stands in the place of the digest while it is computed."""


def sealed(values: Mapping[str, Any]) -> bytes:
    """Write values as JSON, with the digest of what is written in front."""
    content = json.dumps({SEAL: _OPEN, **values}, indent=1).encode()
    return content.replace(_OPEN.encode(), hashlib.sha256(content).hexdigest().encode(), 1)


def is_damaged(content: bytes, values: Mapping[str, Any], unsealed: frozenset[str]) -> bool:
    """Say whether a content is not what was written.

    Args:
        content: All bytes.
        values: What they say.
        unsealed: Keys that a content may have which was written before there were seals: one
            without a seal that has others has lost it.
    """
    seal = values.get(SEAL)
    if seal is None:
        return not values.keys() <= unsealed
    if not isinstance(seal, str) or len(seal) != len(_OPEN):
        return True
    opened = content.replace(seal.encode(), _OPEN.encode(), 1)
    return hashlib.sha256(opened).hexdigest() != seal


def file_digest(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb", buffering=0) as file:
        return digest_of_stream(file)


def digest_of_stream(file: BinaryIO) -> str:
    """Compute the SHA-256 of what is left to be read."""
    digest, buffer = hashlib.sha256(), bytearray(HASHED_BYTES)
    view = memoryview(buffer)
    while count := file.readinto(view):  # type: ignore[attr-defined]  # which files of bytes have
        digest.update(view[:count])
    return digest.hexdigest()
