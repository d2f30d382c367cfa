"""Integrity of JSON and Parquet files: SHA-256 checksums, and type checks of parsed fields."""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, TypeVar, Union, get_args, get_origin, get_type_hints

CHECKSUM = "sha256"

HASHED_BYTES = 1 << 17
"""Bytes per read; hashing releases the GIL, so other threads run meanwhile."""

_OPEN = "0" * 64
"""Placeholder for the digest while it is computed."""

Made = TypeVar("Made")
Check = Callable[[Any], bool]

_BIGINT = 1 << 63


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


def validated(made: Made) -> Made:
    """Check the field types of a data class and return it; integers must fit a BIGINT.

    Raises:
        TypeError: A field has the wrong type.
    """
    fields: type = type(made)
    for name, check in _checks(fields).items():
        if not check(getattr(made, name)):
            value = reprlib.repr(getattr(made, name))
            raise TypeError(f"{name} of a {type(made).__name__} is {value}")
    return made


@cache
def _checks(kind: type) -> dict[str, Check]:
    """Build the type check of each field. Cached per class, because a store has many ranks."""
    return {name: _check(hint) for name, hint in get_type_hints(kind).items()}


def _check(hint: Any) -> Check:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        checks = [_check(arg) for arg in args]
        return lambda value: any(check(value) for check in checks)
    if origin in (dict, list):
        inner = _check(args[-1])
        items: Callable[[Any], Any] = dict.values if origin is dict else iter
        return lambda value: type(value) is origin and all(map(inner, items(value)))
    if hint is int:
        return lambda value: type(value) is int and -_BIGINT <= value < _BIGINT
    return lambda value: hint is Any or type(value) is hint
