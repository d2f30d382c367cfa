"""Splits a trace file into which another program has merged several ranks.

TraceLens' TraceFuse adds the rank to the arguments of each event; SGLang's profile merger puts a
label such as ``[TP00-DP01]`` before each process ID. One rank of such a file has the path
``rank://RANK/LABEL::FILE``, like a member of an archive, and is read like a trace of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from hta_sql.errors import TraceFormatError
from hta_sql.traces.chunks import TraceReader
from hta_sql.traces.metadata import SPACE_AND_COMMA
from hta_sql.traces.salvage import walk
from hta_sql.traces.unpack import MEMBER, UnpackedStream

SCHEME = "rank://"
_URL = re.compile(r"rank://(\d+)/([\w.-]+)::(.+)", re.DOTALL)
_HEADER = b'{"traceEvents":['
_NOT_OF_A_RANK = ("traceEvents", "trace_id", "distributedInfo", "deviceProperties")
"""Keys of a merged file that belong to one of the ranks, or list the devices once for each."""


@dataclass(frozen=True)
class MergedForm:
    """How a program marks the events of a rank.

    Attributes:
        label: Pattern of the mark in the text of an event; its first group is the label.
        foreign: Pattern of events that the program adds, which belong to no rank.
        pid: Pattern of a process ID with a label, to be replaced by the process ID alone.
    """

    label: re.Pattern[bytes]
    foreign: re.Pattern[bytes] | None = None
    pid: re.Pattern[bytes] | None = None


FORMS = (
    MergedForm(
        re.compile(rb'"rank"\s*:\s*(\d{1,9})\s*,\s*"pid_raw"\s*:'),
        foreign=re.compile(rb'"name"\s*:\s*"RANK \d+ - (?:CPU|GPU)"|"process_sort_index"'),
    ),
    MergedForm(
        re.compile(rb'"pid"\s*:\s*"\[((?:[TDPE]P\d{1,6}-?)+|Unknown)\] '),
        pid=re.compile(rb'("pid"\s*:\s*)"\[[\w-]+\] (?:(\d+)"|(?=[^"]))'),
    ),
)


class RankOfFile(NamedTuple):
    """A rank of a merged file."""

    rank: int
    label: str

    def path(self, file: str) -> str:
        """Return the path of this rank of a file."""
        return f"{SCHEME}{self.rank}/{self.label}::{file}"


def file_of(path: str) -> str:
    """Return the file of a path, which may be one of its ranks."""
    found = _URL.fullmatch(path)
    return found[3] if found else path


def merged_form(text: bytes) -> MergedForm | None:
    """Return the form of a merged file that begins with a text; None for other traces."""
    return next((form for form in FORMS if form.label.search(text)), None)


def merged_ranks(name: str, labels: Iterable[bytes]) -> tuple[RankOfFile, ...]:
    """Return the ranks that labels of a merged file stand for.

    A label is a rank, or the positions of a process in groups of parallelism: the positions of its
    tensor group are ranks if they differ; otherwise ranks count tensor, then pipeline, then data
    parallelism.

    Raises:
        TraceFormatError: Two labels stand for the same rank.
    """
    names = sorted(label.decode() for label in labels)
    if all(name.isdecimal() for name in names):
        return tuple(sorted(RankOfFile(int(name), name) for name in names))
    places = [dict(_positions(name)) for name in names]
    ranks = [place.get("TP", -1) for place in places]
    if len(set(ranks)) < len(ranks):
        sizes = {kind: 1 + max(place.get(kind, 0) for place in places) for kind in ("TP", "PP")}
        ranks = [
            (place.get("DP", 0) * sizes["PP"] + place.get("PP", 0)) * sizes["TP"]
            + place.get("TP", 0)
            for place in places
        ]
    if len(set(ranks)) < len(ranks) or min(ranks) < 0:
        raise TraceFormatError(
            f"{name!r} was merged from several traces, and their labels do not determine ranks: "
            f"{', '.join(names)}. Ingest the traces from which it was merged."
        )
    return tuple(sorted(map(RankOfFile, ranks, names)))


def _positions(label: str) -> Iterator[tuple[str, int]]:
    for kind, position in re.findall(r"([TDPE]P)(\d+)", label):
        yield kind, int(position)


class RankStream(UnpackedStream):
    """The JSON of one rank in a merged file: its events in order, and the metadata of the file.

    Args:
        raw: The merged JSON.
        path: Path of the rank.
        problem: See :class:`UnpackedStream`; also set if the merged file is cut off.
    """

    def __init__(self, raw: BinaryIO, path: str) -> None:
        found = _URL.fullmatch(path)
        if not found:
            raise TraceFormatError(
                f"{path!r} names no rank of a merged trace; the form is rank://RANK/LABEL::FILE."
            )
        self._rank, self._label = int(found[1]), found[2].encode()
        super().__init__(raw, MEMBER, path)

    def _member(self) -> Iterator[bytes]:
        reader = TraceReader(self._raw, self._path)  # type: ignore[arg-type]
        yield _HEADER
        separator = b""
        for chunk in reader:
            part = self._part_of(chunk.text).strip(SPACE_AND_COMMA)
            if part:
                yield separator + part
                separator = b",\n"
        if lost := [problem for problem in reader.problems if problem.is_lost]:
            self.problem = lost[0].reason
            return
        rest = json.dumps(self._metadata(reader.metadata))
        yield f"],{rest[1:]}".encode() if rest != "{}" else b"]}"

    def _part_of(self, text: bytes) -> bytes:
        """Return the events of the rank in a sequence of events, with their own process IDs."""
        form = merged_form(text)
        if form is None:
            return b""
        labels = set(form.label.findall(text))
        if self._label not in labels:
            return b""
        if len(labels) > 1 or (form.foreign and form.foreign.search(text)):
            spans = (text[span.start : span.end].strip(SPACE_AND_COMMA) for span in walk(text))
            text = b",\n".join(event for event in spans if self._is_mine(form, event))
        return form.pid.sub(_own_pid, text) if form.pid else text

    def _is_mine(self, form: MergedForm, event: bytes) -> bool:
        found = form.label.search(event)
        return found is not None and found[1] == self._label

    def _metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata of the file that holds for this rank; the rest is the first rank's."""
        kept = {key: value for key, value in metadata.items() if key not in _NOT_OF_A_RANK}
        info = metadata.get("distributedInfo")
        if isinstance(info, dict):
            groups = info.get("pg_config")
            mine = [group for group in groups if self._is_in(group)] if groups else groups
            kept["distributedInfo"] = {**info, "rank": self._rank, "pg_config": mine}
        devices = metadata.get("deviceProperties")
        if isinstance(devices, list):
            kept["deviceProperties"] = [
                device for at, device in enumerate(devices) if device not in devices[:at]
            ]
        return kept

    def _is_in(self, group: object) -> bool:
        """Return whether a process group has this rank; groups that list no ranks have all."""
        ranks = group.get("ranks") if isinstance(group, dict) else None
        return not ranks or self._rank in ranks


def _own_pid(found: re.Match[bytes]) -> bytes:
    return found[1] + (found[2] or b'"')
