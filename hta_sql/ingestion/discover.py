"""Which file is which rank of which capture: paths ─▶ rank ─▶ file.

The ladder, first that answers: the caller's {rank: path} ▸ ``distributedInfo.rank``
inside the trace ▸ the file name ▸ the caller's regex ▸ the order of the names,
with a warning. The caller's regex, where given, goes before the built-in ones.
"""

from __future__ import annotations

import json
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import fsspec

from hta_sql.errors import ParameterError, RankError, TraceFormatError, TraceNotFoundError
from hta_sql.ingestion.source import ARCHIVE_SUFFIXES, archive_members, open_trace
from hta_sql.words import rank_spans

log = logging.getLogger(__name__)

TRACE_SUFFIXES = (".json", ".json.gz", ".json.zst", ".gz", ".zst")
OWN_OUTPUT = re.compile(r"(_with_counters|^overlaid_|^memory_timeline)")
"""What profilers and HTA write beside traces; reading it back would count events twice."""

NAME_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:^|[^a-z])rank[-_.]?\[?(\d+)\]?",  # rank0, rank-0, rank_0, rank[0]
        r"(?:^|[^a-z])worker[-_.]?(\d+)",  # torch's handler with worker_name, TensorBoard
        r"^TP-?(\d+)(?:-DP-?0)?(?:-PP-?0)?(?:-EP-?0)?[.\-_]",  # SGLang with one group in use
        r"^(\d+)\.(?:pt\.trace\.)?json",  # 0.json
    )
)

PEEK_BYTES = 256 << 10
PEEK_LIMIT_BYTES = 64 << 20
OVERLAP_BYTES = 1 << 10
"""Kept of each block while a key is looked for: the key may lie across two of them."""

_DISTRIBUTED_INFO = re.compile(rb'"distributedInfo"\s*:\s*(?=\{)')
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BASE_TIME = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(-?\d+)')
_FIRST_TS = re.compile(rb'"ts"\s*:\s*"?(-?[0-9.]+)')
_KINETO_SIGN = re.compile(rb'"ph"\s*:|"schemaVersion"\s*:|"deviceProperties"\s*:')


@dataclass(frozen=True)
class TraceFile:
    """One trace, the rank it was found to be, and what said so."""

    path: str
    rank: int
    rank_source: str
    start_ns: int = 0
    capture: int = 0


Traces = str | Iterable[str] | Mapping[int, str]

Peek = Callable[[str], tuple[int | None, int]]
"""Path ─▶ (the rank that the trace states, the time of its first event)."""


def discover(
    traces: Traces,
    *,
    ranks: Iterable[int] | None = None,
    rank_regex: str | None = None,
    look: Peek | None = None,
) -> list[TraceFile]:
    """Find the traces and their ranks.

    Args:
        traces: A file, a folder (searched recursively), a glob, a list of these,
            or {rank: path}; local paths or fsspec URLs.
        ranks: Keep only these ranks.
        rank_regex: Finds the rank in a file name; its first group is the rank.
        look: Used in place of :func:`peek`; it may know a file without reading it.

    Returns:
        The traces sorted by capture and rank. Several files of one rank are
        several captures, in order of time; they are never merged.

    Raises:
        TraceNotFoundError: Nothing there, or nothing that is a trace.
        RankError: A wanted rank is not among them.
        ParameterError: rank_regex is not a regular expression with a group.
    """
    look = look or peek
    if isinstance(traces, Mapping):
        found = [
            TraceFile(_existing(path), int(rank), "given", look(path)[1])
            for rank, path in traces.items()
        ]
    else:
        found = _by_ladder(list_trace_paths(traces), _compiled(rank_regex), look)
    found = _number_captures(found)
    if ranks is None:
        return found
    wanted = sorted(set(ranks))
    missing = set(wanted) - {file.rank for file in found}
    if missing:
        raise RankError(
            f"No trace of rank {', '.join(map(str, sorted(missing)))}; there are ranks "
            f"{rank_spans(file.rank for file in found)}."
        )
    return [file for file in found if file.rank in wanted]


def list_trace_paths(traces: str | Iterable[str]) -> list[str]:
    """Expand files, folders and globs to trace paths, sorted, without what is not a trace."""
    given = [traces] if isinstance(traces, str) else list(traces)
    paths: list[str] = []
    for item in given:
        paths.extend(_expand(str(item)))
    if not paths:
        raise TraceNotFoundError(
            f"No traces in {', '.join(map(repr, map(str, given)))}: looked for files named "
            f"{', '.join('*' + suffix for suffix in TRACE_SUFFIXES[:3])}."
        )
    return sorted(set(paths))


def _expand(item: str) -> list[str]:
    fs, root = fsspec.url_to_fs(item)
    if any(c in item for c in "*?[") and not fs.exists(root):
        names = [name for name in fs.glob(root) if fs.isfile(name)]
    elif fs.isdir(root):
        names = [name for name in fs.find(root) if _looks_like_trace(name, root)]
    elif fs.exists(root) and root.endswith(ARCHIVE_SUFFIXES):
        return [
            url
            for url in archive_members(item)
            if _looks_like_trace(
                "/" + url.removeprefix("zip://").removeprefix("tar://").split("::")[0], ""
            )
        ]
    elif fs.exists(root):
        return [item]
    else:
        raise TraceNotFoundError(f"No such file or folder: {item!r}.")
    local = isinstance(fs.protocol, tuple) and "file" in fs.protocol
    return [str(name) if local else str(fs.unstrip_protocol(name)) for name in names]


def _looks_like_trace(path: str, root: str) -> bool:
    below = path[len(root.rstrip("/")) + 1 :].split("/")
    hidden_or_store = any(part.startswith(".") or part.endswith(".store") for part in below)
    name = below[-1]
    return not hidden_or_store and name.endswith(TRACE_SUFFIXES) and not OWN_OUTPUT.search(name)


def _existing(path: str) -> str:
    fs, root = fsspec.url_to_fs(path)
    if not fs.exists(root):
        raise TraceNotFoundError(f"No such file: {path!r}.")
    return path


def _compiled(rank_regex: str | None) -> tuple[re.Pattern[str], ...]:
    if rank_regex is None:
        return NAME_PATTERNS
    try:
        pattern = re.compile(rank_regex)
    except re.error as error:
        raise ParameterError(
            f"rank_regex {rank_regex!r} is not a regular expression: {error}."
        ) from error
    if not pattern.groups:
        raise ParameterError(
            f"rank_regex {rank_regex!r} has no group: put the rank's digits in parentheses."
        )
    return (pattern, *NAME_PATTERNS)


def _by_ladder(
    paths: list[str], patterns: tuple[re.Pattern[str], ...], look: Peek
) -> list[TraceFile]:
    found: list[TraceFile] = []
    unknown: list[tuple[str, int]] = []
    for path in paths:
        try:
            stated, start_ns = look(path)
        except TraceFormatError as error:
            if len(paths) == 1:
                raise
            log.warning("Skipped: %s", error)
            continue
        named = _rank_in_name(path, patterns)
        if stated is not None:
            found.append(TraceFile(path, stated, "distributedInfo", start_ns))
        elif named is not None:
            found.append(TraceFile(path, named, "file name", start_ns))
        else:
            unknown.append((path, start_ns))
    if not found and not unknown:
        raise TraceNotFoundError(f"None of the {len(paths)} files is a Kineto trace.")
    taken = {file.rank for file in found}
    free = (rank for rank in range(len(taken) + len(unknown)) if rank not in taken)
    for (path, start_ns), rank in zip(unknown, free, strict=False):
        found.append(TraceFile(path, rank, "order of names", start_ns))
        if len(paths) > 1:
            log.warning("%s does not say its rank; took it as rank %d.", path, rank)
    return found


def _rank_in_name(path: str, patterns: tuple[re.Pattern[str], ...]) -> int | None:
    name = path.rsplit("/", 1)[-1]
    for pattern in patterns:
        if match := pattern.search(name):
            return int(match.group(1))
    return None


def peek(path: str) -> tuple[int | None, int]:
    """Read the rank that a trace states and the time of its first event [ns, for ordering].

    ``distributedInfo`` may stand before or behind the events; behind them costs
    one pass over the bytes (a tenth of a parse).

    Raises:
        TraceFormatError: The file is not a Kineto trace.
    """
    with open_trace(path) as stream:
        head = stream.read(PEEK_BYTES)
        while not _EVENTS_KEY.search(head) and head.lstrip()[:1] == b"{":
            block = stream.read(PEEK_BYTES)
            if not block or len(head) > PEEK_LIMIT_BYTES:
                break
            head += block
        _check_kineto(path, head)
        info = _DISTRIBUTED_INFO.search(head)
        base = _BASE_TIME.search(head)
        tail = head
        while not info and (block := stream.read(PEEK_BYTES)):
            tail = tail[-OVERLAP_BYTES:] + block
            # A plain search is ten times as fast as an expression, over a whole file.
            if b'"distributedInfo"' in tail:
                info = _DISTRIBUTED_INFO.search(tail)
            if not base and b'"baseTimeNanoseconds"' in tail:
                base = _BASE_TIME.search(tail)
        if info:
            tail = tail + stream.read(PEEK_BYTES)
    first = _FIRST_TS.search(head, head.find(b'"traceEvents"') if b'"traceEvents"' in head else 0)
    start_us = float(first.group(1)) if first else 0.0
    start_ns = (int(base.group(1)) if base else 0) + int(start_us * 1000)
    return (_stated_rank(tail, info.end()) if info else None), start_ns


def _check_kineto(path: str, head: bytes) -> None:
    opening = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if not opening:
        raise TraceFormatError(f"{path!r} is empty.")
    if opening not in (b"{", b"["):
        raise TraceFormatError(
            f"{path!r} is not JSON (it starts with {head[:20]!r}), so not a Kineto trace."
        )
    if opening == b"{" and not _EVENTS_KEY.search(head):
        raise TraceFormatError(f"{path!r} has no traceEvents list, so it is not a Kineto trace.")
    if opening == b"[" and not _KINETO_SIGN.search(head):
        raise TraceFormatError(f"{path!r} is a JSON list without trace events.")


def _stated_rank(text: bytes, position: int) -> int | None:
    try:
        info, _ = json.JSONDecoder().raw_decode(text[position:].decode("utf-8", errors="replace"))
        return int(info["rank"])
    except (ValueError, KeyError, TypeError):
        return None


def _number_captures(found: list[TraceFile]) -> list[TraceFile]:
    by_rank: dict[int, list[TraceFile]] = defaultdict(list)
    for file in found:
        by_rank[file.rank].append(file)
    numbered = []
    for rank, files in by_rank.items():
        files.sort(key=lambda file: (file.start_ns, file.path))
        if len(files) > 1:
            log.warning(
                "Rank %d has %d files; each is a capture of its own and becomes a run: %s.",
                rank,
                len(files),
                ", ".join(file.path.rsplit("/", 1)[-1] for file in files),
            )
        numbered += [replace(file, capture=number) for number, file in enumerate(files)]
    return sorted(numbered, key=lambda file: (file.capture, file.rank))
