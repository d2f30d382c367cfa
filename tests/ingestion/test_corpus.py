"""Every fault in the corpus is tested at every position and in every container."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard

from tests.ingestion.corpus import Fault, event, faults
from tests.ingestion.ways import (
    Way,
    check_nothing_vanished,
    quarantine,
    rows_by_event,
    staged,
)

FAULTS = faults()
NAME = 3
"""Index of the name in the row of a parsed event."""


class Expected(NamedTuple):
    """An expected row of ``quarantine``; ``span`` is the byte offset and the bytes of the event."""

    event_id: int
    is_lost: bool
    reason: str
    span: tuple[int, bytes] | None


PLACES = ("first", "middle", "last", "everywhere")
CONTAINERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda data: gzip.compress(data, 1),
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
}
WHOLE = [event(name=f'"good {n}"') for n in range(6)]
FRAME = (b'{"schemaVersion": 1, "traceEvents": [', b'], "traceName": "a.json"}')


def case_name(case: tuple[Fault, str, str]) -> str:
    """Return the id of a test case, made of its fault, position and container."""
    fault, place, container = case
    return f"{fault.name}-{place}-{container}"


EVERYWHERE = [(fault, "everywhere", list(CONTAINERS)[n % 3]) for n, fault in enumerate(FAULTS)]
"""Cases with a fault at all positions of one file, in alternating containers.

The default test run reads half of these cases.
"""

OTHERS = [
    (fault, place, container)
    for n, fault in enumerate(FAULTS)
    for place, container in product(PLACES, CONTAINERS)
    if (place, container) != EVERYWHERE[n][1:]
]


def file_of(fault: Fault, place: str) -> tuple[bytes, list[str | None], list[Expected]]:
    """Place a fault among valid events; return the file, and the expected names and quarantine."""
    places = {"first": (0,), "middle": (3,), "last": (6,), "everywhere": (0, 3, 6)}[place]
    if fault.is_other_at_the_end:
        places = tuple(at for at in places if at < len(WHOLE)) or (1,)
    data = FRAME[0]
    names: list[str | None] = []
    expected: list[Expected] = []
    events = 0
    for slot in range(len(WHOLE) + 1):
        if slot in places:
            # The bytes of the event are known if the fault is a single event.
            span = (len(data), fault.text) if len(fault.fates) == 1 else None
            data += fault.text + b", "
            for fate in fault.fates:
                names += [fate.name] if fate.is_kept else []
                if fate.reason:
                    expected.append(Expected(events, not fate.is_kept, fate.reason, span))
                events += 1
        if slot < len(WHOLE):
            data += WHOLE[slot] + b", "
            names.append(f"good {slot}")
            events += 1
    return data.removesuffix(b", ") + FRAME[1], names, expected


def check(folder: Path, fault: Fault, place: str, container: str) -> None:
    """Read a file with the fault in it and compare the result with the expected one."""
    data, names, expected = file_of(fault, place)
    path = folder / "trace.json"
    path.write_bytes(CONTAINERS[container](data))
    # The first chunk ends inside the fault at the middle position.
    cut = data.index(WHOLE[2]) + len(WHOLE[2]) + len(fault.text) // 2
    outcome = staged(path, Way(chunk_bytes=cut, is_deep=False))
    rows = rows_by_event(outcome)
    assert [rows[event_id][NAME] for event_id in sorted(rows)] == names
    found = quarantine(outcome)
    assert [row.event_id for row in found] == [row.event_id for row in expected], found
    for row, wanted in zip(found, expected, strict=True):
        assert row.is_lost == wanted.is_lost
        assert row.reason.startswith(wanted.reason)
        source = data[row.byte_offset : row.byte_offset + row.byte_count]
        assert row.excerpt == source[:200].decode("utf-8", "replace")
        if wanted.span:
            assert (row.byte_offset, source) == (wanted.span[0], wanted.span[1].rstrip(b", "))
    check_nothing_vanished(outcome)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case_name(case)) for n, case in enumerate(EVERYWHERE)],
)
def test_a_fault_costs_itself(tmp_path: Path, case: tuple[Fault, str, str]) -> None:
    """A fault has its expected result at every position, and all other events are stored."""
    check(tmp_path, *case)


@pytest.mark.slow(reason="fuzz")
@pytest.mark.parametrize("case", OTHERS, ids=case_name)
def test_a_fault_costs_itself_in_every_place(tmp_path: Path, case: tuple[Fault, str, str]) -> None:
    """Each fault has its expected result at every position and in every container."""
    check(tmp_path, *case)
