"""Computes the SHA-256 of files, and writes JSON files that contain their own checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

CHECKSUM = "sha256"

HASHED_BYTES = 1 << 17
"""Bytes per read; hashing releases the GIL, so other threads run meanwhile."""

_OPEN = "0" * 64
"""Placeholder for the digest while it is computed."""


def with_checksum(values: Mapping[str, Any]) -> bytes:
    """Serialize values as JSON with a checksum as the first field; data classes become objects."""
    named = {CHECKSUM: _OPEN, **values}
    fields = [f"{json.dumps(name)}: {_json(value)}" for name, value in named.items()]
    content = "{{\n{}\n}}\n".format(",\n".join(fields)).encode()
    return content.replace(_OPEN.encode(), hashlib.sha256(content).hexdigest().encode(), 1)


def _json(value: object) -> str:
    """Serialize a value as JSON, with each list item on its own line.

    The encoder's ``indent`` option would take ten times as long.
    """
    if not isinstance(value, list):
        return json.dumps(value, default=vars)
    return "[\n{}\n]".format(",\n".join(json.dumps(item, default=vars) for item in value))


def is_damaged(content: bytes, values: Mapping[str, Any]) -> bool:
    """Return whether the content of a file has no checksum or does not match it.

    Args:
        content: All bytes of the file.
        values: Values parsed from the content.
    """
    seal = values.get(CHECKSUM)
    if not isinstance(seal, str) or len(seal) != len(_OPEN):
        return True
    opened = content.replace(seal.encode(), _OPEN.encode(), 1)
    return hashlib.sha256(opened).hexdigest() != seal


def file_digest(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb", buffering=0) as file:
        return digest_of_stream(file)


def digest_of_stream(file: BinaryIO) -> str:
    """Compute the SHA-256 of the rest of a stream."""
    digest, buffer = hashlib.sha256(), bytearray(HASHED_BYTES)
    view = memoryview(buffer)
    while count := file.readinto(view):  # type: ignore[attr-defined]  # binary files have readinto
        digest.update(view[:count])
    return digest.hexdigest()
