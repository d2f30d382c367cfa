"""Redacts stack frames of dumps, memory snapshots and compiled kernels.

Folders and words that analyses search for in the frames are kept.
"""

from __future__ import annotations

import csv
import functools
import json
import re

from hta_sql.exports.redaction.names import Redactor
from hta_sql.library.sql_files import sql_root

_OF_TORCH = re.compile(r"(^|[/\\])(torch|torchgen)[/\\]")
_COMPILED = re.compile(r"\.(c|cc|cpp|cu|h|hpp|so)$")
_SOURCE_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)(?:, in ([^\n]*))?')
_FRAME = re.compile(r"(.*)\((\d+)\): (.*)", re.DOTALL)
_PARTS = {"file": "file", "name": "function"}


def redacted_dump_file(redact: Redactor, text: str) -> str:
    """Return the hash of a dump's source file; PyTorch's own files keep the folder torch/.

    The analyses of hangs recognize frames of PyTorch by this folder.
    """
    return f"{'torch/' if _OF_TORCH.search(text) else ''}{redact.hashed('file', text)}"


def redacted_snapshot_frame(redact: Redactor, column: str, text: str) -> str:
    """Return the hash of a frame's file or function; text that snapshot_categories needs is kept.

    Args:
        redact: Computes the hashes.
        column: ``file`` or ``name``.
        text: File or function name.
    """
    hashed = redact.hashed(column, text)
    for pattern in _rules(_PARTS[column]):
        if found := pattern.search(text):
            return _with_hash(found, hashed, "/" if column == "file" else "_")
    if column == "file" and _OF_TORCH.search(text):
        return f"{hashed}/torch/{hashed}"
    ending = _COMPILED.search(text) if column == "file" else None
    return hashed + (ending[0] if ending else "")


def redacted_source_stacks(redact: Redactor, text: str) -> str:
    """Redact the stacks of compiled kernels (a JSON list of strings); drop their source code."""
    try:
        stacks = json.loads(text)
    except (ValueError, RecursionError):
        return redact.hashed("json", text)
    if not isinstance(stacks, list):
        return redact.hashed("json", text)
    new = [
        "\n".join(_source_frame(redact, *found.groups()) for found in _SOURCE_FRAME.finditer(stack))
        for stack in stacks
        if isinstance(stack, str)
    ]
    return json.dumps(new, separators=(",", ":"))


def _source_frame(redact: Redactor, file: str, line: str, function: str | None) -> str:
    """Return a frame with file and function redacted in the same way as Python frames in traces."""
    found = _FRAME.fullmatch(redact("frame", f"{file}({line}): {function or ''}"))
    file, function = (found[1], found[3]) if found else (redact.hashed("file", file), "")
    return f'File "{file}", line {line}' + (f", in {function}" if function else "")


def _with_hash(found: re.Match[str], hashed: str, separator: str) -> str:
    """Return the hash with the matched text at its start or end, so that the pattern matches."""
    kept, is_first, is_last = found[0], found.start() == 0, found.end() == len(found.string)
    if is_first:
        return kept if is_last else kept + hashed
    return hashed + (kept if kept[0] in "/\\" else separator + kept)


@functools.cache
def _rules(part: str) -> tuple[re.Pattern[str], ...]:
    path = sql_root() / "tables" / "snapshot_categories.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rules = sorted(csv.DictReader(file), key=lambda rule: int(rule["priority"]))
    return tuple(re.compile(rule["pattern"]) for rule in rules if rule["part"] == part)
