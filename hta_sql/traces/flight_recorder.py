"""Reads Flight Recorder dumps of torch.distributed, as JSON or as pickles of plain values."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hta_sql.errors import TraceFormatError
from hta_sql.traces.numbers import bounded_integer
from hta_sql.traces.pickles import PICKLE_MAGIC, read_pickle
from hta_sql.traces.source import BLOCK_BYTES, open_any

MAX_BYTES = 512 << 20
"""Maximum unpacked size of a dump [bytes]: 400 times that of 2,000 entries with stacks."""

MAX_WORLD_SIZE = 1 << 24
"""Maximum plausible number of ranks of a job, as in sql/ingest/argument_forms.csv; larger ranks and sizes are ignored."""

_JSON_SIGN = re.compile(rb'"(?:profiling_name|pg_config|comm_lib_version|nccl_comm_state)"\s*:')
_JSON_ENTRIES = re.compile(rb'"entries"\s*:\s*\[')
_BETWEEN = re.compile(r"[,\s]*")
_PICKLE_SIGN = re.compile(rb"\x07\0\0\0(?:entries|version)|\t\0\0\0pg_config|\x07entries")
_TRAILING_RANK = re.compile(r"(\d{1,9})(?:\.(?:json|pkl|pickle|bin))?(?:\.(?:gz|zst))?$")
_DEFAULT_GROUP = "default_pg"


@dataclass(frozen=True)
class Dump:
    """Contents of one dump, as they were written."""

    version: str
    entries: list[dict[str, Any]]
    groups: dict[str, dict[str, Any]]
    """Name of each process group ─▶ its description and ranks; empty if the dump states none."""
    status: dict[str, dict[str, Any]]
    """Id of a process group in its process ─▶ last enqueued, started and completed collective."""
    library_version: str | None
    """Version of the communication library (NCCL)."""
    skipped: int = 0
    """Number of entries skipped as invalid, because they lack a sequence number or a group."""
    problem: str | None = None
    """Why entries at the end are missing; None if the dump is complete."""
    odd_keys: int = 0
    """Number of items of dicts that were left out, because their key is nested."""
    size: int = 0
    """Size of the file, unpacked [bytes]."""

    @property
    def world_size(self) -> int | None:
        """Number of ranks in the default group; None if the dump does not list them."""
        for group in self.groups.values():
            if group.get("desc") == _DEFAULT_GROUP and (ranks := group_ranks(group)):
                return len(ranks)
        return None


def is_dump(head: bytes) -> bool:
    """Return whether a file is a dump, judging by its first bytes."""
    if head.startswith(PICKLE_MAGIC):
        return bool(_PICKLE_SIGN.search(head))
    return (
        head.lstrip()[:1] == b"{"
        and b'"traceEvents"' not in head
        and bool(_JSON_ENTRIES.search(head) and _JSON_SIGN.search(head))
    )


def rank_of_name(name: str) -> int | None:
    """Return the rank that a dump's name ends with, as in ``nccl_trace_rank_3`` or ``dump3.json``."""
    found = _TRAILING_RANK.search(name)
    return int(found.group(1)) if found else None


def read_dump(path: str) -> Dump:
    """Read a dump.

    Raises:
        TraceNotFoundError: The file does not exist.
        TraceFormatError: The file is not a dump, is damaged, or is a pickle that contains more than
            plain values.
    """
    return parse_dump(_bytes(path), path)


def parse_dump(data: bytes, path: str) -> Dump:
    """Parse the bytes of a dump.

    Args:
        data: The unpacked bytes.
        path: Name of the file in errors.

    Raises:
        TraceFormatError: The bytes are not a dump, are damaged, or are a pickle that contains more
            than plain values.
    """
    if data.startswith(PICKLE_MAGIC):
        value, problem, odd_keys = read_pickle(data, path)
    else:
        value, problem = _json(data, path)
        odd_keys = 0
    if not isinstance(value, dict) or not isinstance(value.get("entries", []), list):
        raise TraceFormatError(
            f"{path!r} is not a Flight Recorder dump: it has no list of entries."
        )
    entries = value.get("entries", [])
    whole = [entry for entry in entries if _is_entry(entry)]
    return Dump(
        version=_text(value.get("version")) or "",
        entries=whole,
        groups=_table(value.get("pg_config")),
        status=_table(value.get("pg_status")),
        library_version=_text(value.get("comm_lib_version")) or _text(value.get("nccl_version")),
        skipped=len(entries) - len(whole),
        problem=problem,
        odd_keys=odd_keys,
        size=len(data),
    )


def group_ranks(group: dict[str, Any]) -> list[int] | None:
    """Return the sorted ranks of a group; dumps may store them as a string: ``"[0, 1]"``."""
    stated = group.get("ranks")
    if isinstance(stated, str):
        try:
            stated = json.loads(stated)
        except (ValueError, RecursionError):
            return None
    if isinstance(stated, list) and stated and all(type(rank) is int for rank in stated):
        return sorted(stated) if max(map(abs, stated)) < MAX_WORLD_SIZE else None
    return None


def _bytes(path: str) -> bytes:
    blocks, total = [], 0
    with open_any(path) as stream:
        while block := stream.read(BLOCK_BYTES):
            total += len(block)
            if total > MAX_BYTES:
                raise TraceFormatError(
                    f"{path!r} is larger than {MAX_BYTES >> 20} MiB, the maximum size for a Flight "
                    "Recorder dump."
                )
            blocks.append(block)
    return b"".join(blocks)


def _json(data: bytes, path: str) -> tuple[Any, str | None]:
    """Parse JSON; a truncated file yields its complete entries."""
    text = data.decode("utf-8", "replace")
    try:
        return json.loads(text), None
    except (ValueError, RecursionError) as error:
        damage = error
    if "digits" in str(damage):
        with suppress(ValueError, RecursionError):
            return json.loads(text, parse_int=bounded_integer), None
    start = re.search(r'"entries"\s*:\s*\[', text)
    if start is None:
        raise TraceFormatError(f"{path!r} is not valid JSON: {damage}.") from damage
    return {"entries": _whole_entries(text, start.end())}, f"it is not valid JSON: {damage}"


def _whole_entries(text: str, at: int) -> list[Any]:
    """Parse entry by entry, up to the first incomplete entry."""
    decoder, found = json.JSONDecoder(), []
    while between := _BETWEEN.match(text, at):
        try:
            entry, at = decoder.raw_decode(text, between.end())
        except (ValueError, RecursionError):
            break
        found.append(entry)
    return found


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("record_id"), int)
        and isinstance(entry.get("profiling_name"), str)
    )


def _text(value: Any) -> str | None:
    return value or None if isinstance(value, str) else None


def _table(value: Any) -> dict[str, dict[str, Any]]:
    """Return a dict of dicts; other values are omitted."""
    if not isinstance(value, dict):
        return {}
    return {str(key): inner for key, inner in value.items() if isinstance(inner, dict)}
