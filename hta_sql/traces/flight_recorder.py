"""Reads Flight Recorder dumps of torch.distributed: JSON, or pickles of plain values, with or without stack frames."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from hta_sql.errors import TraceFormatError
from hta_sql.traces.pickles import PICKLE_MAGIC, read_pickle
from hta_sql.traces.source import BLOCK_BYTES, open_any

MAX_BYTES = 512 << 20
"""Size of a dump, unpacked: 400 times that of 2,000 entries with their stacks."""

_JSON_SIGN = re.compile(rb'"(?:profiling_name|pg_config|comm_lib_version|nccl_comm_state)"\s*:')
_JSON_ENTRIES = re.compile(rb'"entries"\s*:\s*\[')
_BETWEEN = re.compile(r"[,\s]*")
_PICKLE_SIGN = re.compile(rb"\x07\0\0\0(?:entries|version)|\t\0\0\0pg_config|\x07entries")
_TRAILING_RANK = re.compile(r"(\d{1,9})(?:\.(?:json|pkl|pickle|bin))?(?:\.(?:gz|zst))?$")
_DEFAULT_GROUP = "default_pg"


@dataclass(frozen=True)
class Dump:
    """One dump, as it was written."""

    version: str
    entries: list[dict[str, Any]]
    groups: dict[str, dict[str, Any]]
    """Name of each process group ─▶ its description and ranks; empty if the dump states none."""
    status: dict[str, dict[str, Any]]
    """Number of each process group in its process ─▶ its last enqueued, started and completed collective."""
    library_version: str | None
    """Of the communication library."""
    skipped: int = 0
    """Number of invalid entries, without a number or a group."""
    problem: str | None = None
    """Reason for missing entries at its end; None if it is complete."""

    @property
    def world_size(self) -> int | None:
        """Ranks of the default group, if the dump states them."""
        for group in self.groups.values():
            if group.get("desc") == _DEFAULT_GROUP and (ranks := group_ranks(group)):
                return len(ranks)
        return None


def is_dump(head: bytes) -> bool:
    """Return the kind of a file from its first bytes, which may be the whole file."""
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
        TraceNotFoundError: There is no such file.
        TraceFormatError: It is no dump, is damaged, or has an opcode that builds more than plain values.
    """
    return parse_dump(_bytes(path), path)


def parse_dump(data: bytes, path: str) -> Dump:
    """Return what the bytes of a dump hold.

    Args:
        data: The dump, unpacked.
        path: What errors call the file.

    Raises:
        TraceFormatError: It is no dump, is damaged, or has an opcode that builds more than plain values.
    """
    if data.startswith(PICKLE_MAGIC):
        value, problem = read_pickle(data, path)
    else:
        value, problem = _json(data, path)
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
    )


def group_ranks(group: dict[str, Any]) -> list[int] | None:
    """Return the ranks of a group, which dumps hold as text: ``"[0, 1]"``."""
    stated = group.get("ranks")
    if isinstance(stated, str):
        try:
            stated = json.loads(stated)
        except ValueError:
            return None
    if isinstance(stated, list) and stated and all(isinstance(rank, int) for rank in stated):
        return sorted(stated)
    return None


def _bytes(path: str) -> bytes:
    blocks, total = [], 0
    with open_any(path) as stream:
        while block := stream.read(BLOCK_BYTES):
            total += len(block)
            if total > MAX_BYTES:
                raise TraceFormatError(
                    f"{path!r} is larger than {MAX_BYTES >> 20} MiB, the maximum of a Flight "
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
        start = re.search(r'"entries"\s*:\s*\[', text)
        if start is None:
            raise TraceFormatError(f"{path!r} is not valid JSON: {error}.") from error
        return {"entries": _whole_entries(text, start.end())}, f"it is not valid JSON: {error}"


def _whole_entries(text: str, at: int) -> list[Any]:
    """Parse entry by entry, as far as they are whole."""
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
