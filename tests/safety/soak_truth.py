"""Journals of concurrent changes to a store, and the answers that readers may get.

The content of a run is a number: each of its ranks has kernels of 100 + content µs. A change is
recorded twice: before it begins with all possible results, and after it ends with its actual
result. An answer is wrong if a run cannot have had the state that it shows at any time since the
store was opened.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RANKS = 2
KERNELS = 3
ANYTHING = "*"
"""Content of a run whose files are damaged and not yet restored."""

Content = int | str | None
"""Content of a run; None if the run does not exist."""


def trace(content: int, rank: int) -> dict[str, Any]:
    """Return a trace whose kernels identify its content, each with its launch."""
    events: list[dict[str, Any]] = []
    for number in range(KERNELS):
        shared = {"ph": "X", "pid": 1, "tid": 1, "ts": number * 1e5}
        launch = {"correlation": number + 1}
        events += [
            shared | {"cat": "cpu_op", "name": "aten::mm", "dur": 50.0, "args": {}},
            shared
            | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 5.0, "args": launch},
            {
                "ph": "X",
                "cat": "kernel",
                "name": "gemm",
                "pid": 0,
                "tid": 7,
                "ts": number * 1e5 + 10,
            }
            | {"dur": 100.0 + content, "args": launch | {"device": 0, "stream": 7}},
        ]
    return {"distributedInfo": {"rank": rank, "world_size": RANKS}, "traceEvents": events}


def write_traces(folder: Path, content: int) -> Path:
    """Replace the traces of all ranks atomically, one by one."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(RANKS):
        partial = folder / f"rank{rank}.partial"
        partial.write_text(json.dumps(trace(content, rank)))
        partial.replace(folder / f"rank{rank}.json")
    return folder


def content_of(rows: Iterable[tuple[int, int, int]]) -> int | str:
    """Return the content of a run, or a description of its ranks if they are inconsistent.

    Args:
        rows: For each rank: its number, the number of kernels, and their total time [ns].
    """
    found = sorted(rows)
    contents = {total / count / 1000 - 100 for _, count, total in found}
    counts = {count for _, count, _ in found}
    if (
        [rank for rank, *_ in found] != list(range(RANKS))
        or counts != {KERNELS}
        or len(contents) > 1
    ):
        return f"mixed: {found}"
    return int(contents.pop())


class Journal:
    """The changes of one writer, in a file that survives when the writer is killed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.state: dict[str, list[Content]] = {}
        self.unfinished: tuple[str, list[Any]] | None = None
        """Change that was in progress when the writer was killed."""
        for line in read_lines(path):
            self.state |= line["may"]
            self.unfinished = None if line["done"] else (line["name"], line["arguments"])

    @contextmanager
    def change(
        self, name: str, arguments: list[Any], becomes: Mapping[str, Content]
    ) -> Iterator[None]:
        """Record the possible results of a change, and the actual result after the block."""
        may = {key: _union(self.state.get(key, [None]), [value]) for key, value in becomes.items()}
        self._write(name, arguments, may, done=False)
        yield
        self._write(name, arguments, {key: [value] for key, value in becomes.items()}, done=True)

    def _write(
        self, name: str, arguments: list[Any], may: dict[str, list[Content]], *, done: bool
    ) -> None:
        self.state |= may
        line = {
            "at": time.monotonic(),
            "name": name,
            "arguments": arguments,
            "done": done,
            "may": may,
        }
        with self._path.open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")


def _union(some: list[Content], others: list[Content]) -> list[Content]:
    return [*some, *(one for one in others if one not in some)]


def read_lines(path: Path, offset: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the complete lines of a journal that follow a byte offset."""
    if path.exists():
        with path.open("rb") as file:
            file.seek(offset)
            for line in file:
                if line.endswith(b"\n"):
                    yield json.loads(line)


class Truth:
    """The changes of all writers, read from their journals."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[Path, int] = {}
        self._history: dict[str, list[tuple[float, list[Content]]]] = {}

    def may_be(self, since: float) -> dict[str, list[Content]]:
        """Return the contents that each run may have had since the given time.

        The result also has a key ``damage``, which is not a run.
        """
        for path in sorted(self._folder.glob("*.journal")):
            offset = self._offsets.get(path, 0)
            size = path.stat().st_size
            with path.open("rb") as file:
                file.seek(offset)
                text = file.read(size - offset)
            whole = text[: text.rfind(b"\n") + 1]
            self._offsets[path] = offset + len(whole)
            for line in map(json.loads, whole.splitlines()):
                for key, contents in line["may"].items():
                    self._history.setdefault(key, []).append((line["at"], contents))
        found: dict[str, list[Content]] = {}
        for key, changes in self._history.items():
            allowed: list[Content] = []
            for at, contents in reversed(changes):
                allowed = _union(allowed, contents)
                if at < since:
                    break
            else:
                allowed = _union(allowed, [None])
            found[key] = allowed
        return found


def wrong(seen: Mapping[str, Content], may: Mapping[str, list[Content]]) -> list[str]:
    """Describe each run whose content in an answer was never valid."""
    found = []
    for run in sorted({*seen, *may} - {"damage"}):
        allowed = may.get(run, [None])
        if ANYTHING not in allowed and seen.get(run) not in allowed:
            found.append(f"{run} is {seen.get(run)}, and may be {allowed}")
    return found


def note(path: Path, text: str) -> None:
    """Append a line to a file that several processes write."""
    with path.open("ab", buffering=0) as file:
        file.write(f"{os.getpid()} {time.monotonic():.2f} {text}\n".encode())
