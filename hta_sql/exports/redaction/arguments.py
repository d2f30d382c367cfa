"""Redacts arguments and metadata; known keys and numbers are unchanged."""

from __future__ import annotations

import csv
import functools
import json
import math
import re
from typing import Any

from hta_sql.exports.redaction.names import Redactor
from hta_sql.exports.redaction.public import listed, patterns
from hta_sql.library.sql_files import sql_root

KIND_OF_KEY = {
    "Collective name": "collective",
    "dtype": "type",
    "Input type": "type",
    "Process Group Name": "group_name",
    "pg_name": "group_name",
    "Process Group Description": "group",
    "pg_desc": "group",
    "backend": "backend",
    "backend_config": "backend",
    "kernel_backend": "backend",
    "nccl_version": "version",
    "Call stack": "stack",
    "Module Hierarchy": "module",
    "cuda_sync_kind": "kernel",
    "deviceProperties": "device",
    "name": "thread",
    "labels": "thread",
    "host_name": "host",
    "trace_id": "trace",
}
"""Key ─▶ kind of its texts; all other keys have numbers, or texts that are hashed."""


def redacted_arguments(
    redact: Redactor, values: dict[str, Any], names: str = "thread"
) -> dict[str, Any]:
    """Return the redacted arguments of an event, or the redacted metadata of a trace.

    Strings under known keys are redacted as names of their kind. A number, or a list of numbers,
    under any other key is kept under the hash of its key. Everything else is dropped.

    Args:
        redact: Replaces names.
        values: The arguments.
        names: Kind of the string under the key ``name``.
    """
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key in known_keys():
            kind = names if key == "name" else KIND_OF_KEY.get(key, "scalar")
            found[key] = redacted_value(redact, kind, value)
        elif _is_public_counter(key) or _is_number(value):
            found[redact("counter", key)] = redacted_value(redact, "scalar", value)
        else:
            redact.drop("key", key)
    return found


def redacted_value(redact: Redactor, kind: str, value: Any) -> Any:
    """Return a value or nested list with strings redacted as names of a kind; numbers are kept."""
    if isinstance(value, str):
        return redact(kind, value)
    if isinstance(value, list):
        return [redacted_value(redact, kind, one) for one in value]
    if isinstance(value, dict):
        return redacted_arguments(redact, value, kind)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def redacted_json(redact: Redactor, kind: str, text: str) -> str:
    """Return redacted JSON; invalid JSON, or JSON nested too deeply to parse, is hashed."""
    try:
        value = redacted_value(redact, kind, json.loads(text))
        return json.dumps(value, separators=(",", ":"))
    except (ValueError, RecursionError):
        return redact.hashed("json", text)


def _is_public_counter(key: str) -> bool:
    return any(pattern.fullmatch(key) for pattern in patterns("counter"))


def _is_number(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_number, value))
    return isinstance(value, (bool, int, float)) or (
        isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value) is not None
    )


@functools.cache
def known_keys() -> frozenset[str]:
    """Return the keys that profilers write: those in arguments.csv and those of trace metadata."""
    path = sql_root() / "ingest" / "arguments.csv"
    with path.open(encoding="utf-8", newline="") as file:
        arguments = {row["argument"] for row in csv.DictReader(file)}
    return frozenset(arguments | listed("key") | KIND_OF_KEY.keys())
