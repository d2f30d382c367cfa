"""Streams the nodes of PyTorch's execution traces (torch.profiler.ExecutionTraceObserver)."""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import Any, BinaryIO

from hta_sql.errors import TraceFormatError
from hta_sql.text import counted
from hta_sql.traces.numbers import bounded_integer
from hta_sql.traces.source import BLOCK_BYTES, open_any

Node = dict[str, Any]

MAX_NODE_CHARACTERS = 64 << 20
"""Maximum size of a node [characters]; the longest nodes of valid files have a few megabytes."""

_SIGN_BYTES = 64 << 10
_NODES = re.compile(r'"nodes"\s*:\s*\[')
_SIGN = re.compile(rb'^\s*\{(?=[\s\S]*?"schema"\s*:)[\s\S]*?"nodes"\s*:\s*\[')
_NODE_OF_PYTORCH = re.compile(rb'"rf_id"|"ctrl_deps"\s*:\s*\d')
_NODE_OF_CHAKRA = re.compile(rb'"(?:data_deps|duration_micros)"|"ctrl_deps"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")


def is_execution_trace(head: bytes) -> bool:
    """Return whether a file starts like an execution trace; Chakra's own exports do not match."""
    start = head[:_SIGN_BYTES]
    return bool(
        _SIGN.search(start) and _NODE_OF_PYTORCH.search(start) and not _NODE_OF_CHAKRA.search(start)
    )


def read_execution_trace(path: str, take: Callable[[Node], None]) -> str | None:
    """Pass each node to a function, in file order; memory holds one block and one node.

    Returns:
        Why the end of the file is missing; None if the file is complete.

    Raises:
        TraceNotFoundError: The file does not exist.
        TraceFormatError: The file has no nodes.
    """
    with open_any(path) as stream:
        window = _Window(stream)
        start = _NODES.search(window.text)
        while not start and window.grow():
            start = _NODES.search(window.text)
        if not start:
            raise TraceFormatError(f"{path!r} is not an execution trace: it has no list of nodes.")
        window.position = start.end()
        problem = _read_nodes(window, take)
        while not problem and stream.read(BLOCK_BYTES):
            pass  # read to the end, where defects of a compressed file become known
        return problem or window.problem


class _Window:
    """The part of a file that is in memory.

    Attributes:
        text: Decoded text of the part.
        position: Position in the text up to which nodes have been parsed.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self.text, self.position = "", 0
        self.is_whole = False

    def grow(self) -> bool:
        """Read the next block; return False at the end of the file or if a node is too long."""
        rest = self.text[self.position :]
        if self.is_whole or len(rest) > MAX_NODE_CHARACTERS:
            return False
        block = self._stream.read(max(BLOCK_BYTES, len(rest)))
        self.is_whole = not block
        self.text, self.position = rest + self._decoder.decode(block, final=not block), 0
        return True

    @property
    def problem(self) -> str | None:
        """Defect of the compressed file that was found so far, or None."""
        return getattr(self._stream, "problem", None)


def _read_nodes(window: _Window, take: Callable[[Node], None]) -> str | None:
    decode, count = json.JSONDecoder(parse_int=bounded_integer).raw_decode, 0
    while True:
        found = _BETWEEN.match(window.text, window.position)
        window.position = found.end() if found else window.position
        if window.position >= len(window.text):
            if window.grow():
                continue
            return window.problem or f"it is cut off after {counted(count, 'node')}"
        if window.text[window.position] == "]":
            return None
        try:
            node, end = decode(window.text, window.position)
        except (ValueError, RecursionError) as error:
            if isinstance(error, ValueError) and window.grow():
                continue
            why = window.problem or str(error).partition(": line")[0]
            return f"it is truncated or damaged after {counted(count, 'node')} ({why})"
        # A number may continue in the next block.
        if end == len(window.text) and window.grow():
            continue
        window.position = end
        if isinstance(node, dict):
            take(node)
            count += 1
