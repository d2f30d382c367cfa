"""Reads the nodes of PyTorch's execution traces (torch.profiler.ExecutionTraceObserver) one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from hta_sql.errors import TraceFormatError
from hta_sql.text import counted
from hta_sql.traces.source import open_any

Node = dict[str, Any]

MAX_BYTES = 1 << 30
"""A larger file is refused: its text is in memory as a whole."""

_SIGN_BYTES = 64 << 10
_NODES = re.compile(r'"nodes"\s*:\s*\[')
_SIGN = re.compile(rb'^\s*\{(?=[\s\S]*?"schema"\s*:)[\s\S]*?"nodes"\s*:\s*\[')
_NODE_OF_PYTORCH = re.compile(rb'"rf_id"|"ctrl_deps"\s*:\s*\d')
_NODE_OF_CHAKRA = re.compile(rb'"(?:data_deps|duration_micros)"|"ctrl_deps"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")


def is_execution_trace(head: bytes) -> bool:
    """Judge the first bytes of a file; exports of Chakra's linker and converter do not count."""
    start = head[:_SIGN_BYTES]
    return bool(
        _SIGN.search(start) and _NODE_OF_PYTORCH.search(start) and not _NODE_OF_CHAKRA.search(start)
    )


def read_execution_trace(path: str, take: Callable[[Node], None]) -> str | None:
    """Pass each node to a function, in the order of the file.

    Returns:
        Why its end is missing; None: it is whole.

    Raises:
        TraceNotFoundError: There is no such file.
        TraceFormatError: It is larger than :data:`MAX_BYTES`, is not UTF-8, or has no nodes.
    """
    with open_any(path) as stream:
        content = stream.read(MAX_BYTES + 1)
        problem = getattr(stream, "problem", None)
    if len(content) > MAX_BYTES:
        raise TraceFormatError(
            f"{path!r} is an execution trace above {MAX_BYTES >> 20:,} MiB. Record fewer iterations."
        )
    text = content.decode("utf-8", errors="replace")
    del content
    start = _NODES.search(text)
    if not start:
        raise TraceFormatError(f"{path!r} is not an execution trace: it has no list of nodes.")
    decode = json.JSONDecoder().raw_decode
    position, count = start.end(), 0
    while (position := _end_of(_BETWEEN, text, position)) < len(text) and text[position] != "]":
        try:
            node, position = decode(text, position)
        except (ValueError, RecursionError) as error:
            why = problem or str(error).partition(": line")[0]
            return f"it ends or breaks after {counted(count, 'node')} ({why})"
        if isinstance(node, dict):
            take(node)
            count += 1
    if position >= len(text):
        return f"it is cut off after {counted(count, 'node')}"
    return problem


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found else position
