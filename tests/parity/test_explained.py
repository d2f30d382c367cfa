"""Proof that cells differ from HTA's for the causes in the ledger.

The frame is computed again in plain Python from the raw trace. With the causes as quirks it is HTA's
frame. Without any it differs from HTA's in the cells of the ledger, so it is ours. Without one of them
it is not HTA's, so each is needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import pandas as pd
import pytest

from hta_sql import TraceStore
from tests.parity import plain_time
from tests.parity.comparison import Line, compare
from tests.parity.hta_answers import KEYS, hta_frame
from tests.parity.jobs import HTA
from tests.parity.ledger import read_ledger
from tests.parity.plain_time import Answer, Classes
from tests.parity.plain_trace import Causes, Job, read_job

needs_numbers = pytest.mark.skipif(not HTA.is_dir(), reason="HTA's numbers are not here")

PLAIN: dict[str, Callable[[Job, Causes, Classes], Answer]] = {
    "temporal_breakdown": plain_time.temporal,
    "incl_last_temporal_breakdown": plain_time.whole_temporal,
    "comm_comp_overlap": plain_time.overlap,
    "gpu_kernel_breakdown_all_types": plain_time.kernel_types,
    "gpu_kernel_breakdown_all_kernels": plain_time.kernels,
    "idle_time_breakdown": plain_time.idle,
    "idle_time_interval_stats": plain_time.idle,
}


def differing(ledger: list[Line]) -> dict[tuple[str, str], list[Line]]:
    """Return the lines of a ledger that have causes, by job and frame."""
    found: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in ledger:
        if line.causes and line.frame in PLAIN:
            found[line.job, line.frame].append(line)
    return found


DIFFERING = differing(read_ledger())


def causes_of(lines: list[Line]) -> Causes:
    """Return all causes of a frame."""
    return frozenset(cause for line in lines for cause in line.causes.split())


def plain(job: str, frame: str, causes: Causes, classes: Classes) -> pd.DataFrame:
    """Compute the frame in plain Python."""
    answer = PLAIN[frame](read_job(job, floats="Q6" in causes), causes, classes)
    keys = KEYS[frame]
    return pd.DataFrame([dict(zip(keys, key, strict=True)) | row for key, row in answer.items()])


def unequal(job: str, frame: str, causes: Causes, classes: Classes) -> list[tuple[object, ...]]:
    """Return the differences from HTA's frame: column, kind, cells and the digest of their keys."""
    hta = hta_frame(job, frame)
    assert hta is not None
    ours = plain(job, frame, causes, classes)
    lines = compare(job, frame, ours, hta[[c for c in hta.columns if c in ours.columns]])
    return [line.fact[2:] for line in lines if line.kind != "equal"]


def classes_of(store: TraceStore, job: str) -> Classes:
    """Return our class of each device event of a job."""
    query = "SELECT rank, event_id, class FROM gpu_ops WHERE run = $run"
    found: Classes = defaultdict(dict)
    for rank, event, kind in store.sql(query, {"run": job}).rows():
        found[rank][event] = kind
    return found


@needs_numbers
@pytest.mark.parametrize(("job", "frame"), DIFFERING)
def test_the_causes_explain_the_difference(job: str, frame: str, jobs_store: TraceStore) -> None:
    """All causes give HTA's numbers, no cause gives ours, and one less gives neither."""
    check_causes(job, frame, DIFFERING[job, frame], classes_of(jobs_store, job))


def check_causes(job: str, frame: str, lines: list[Line], known: Classes) -> None:
    """Compute a frame with all causes of its lines, with none, and with each left out."""
    causes = causes_of(lines)
    assert unequal(job, frame, causes, known) == []
    shown = set(plain(job, frame, frozenset(), known).columns) | {"*"}
    listed = [line.fact[2:] for line in lines if line.column in shown]
    assert sorted(unequal(job, frame, frozenset(), known)) == sorted(listed)
    for cause in causes:
        assert unequal(job, frame, causes - {cause}, known), f"{cause} changes nothing"
