"""Proof that frames differ from HTA's because of the causes in the ledger.

Each frame is computed again in plain Python from the raw trace. With all causes applied as quirks,
it equals HTA's frame. Without any cause, it differs from HTA's in exactly the cells that the ledger
lists, so it equals ours. If any single cause is left out, it differs from HTA's, so each cause is
needed.
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
    """Return (job, frame) ─▶ lines of a ledger that have causes."""
    found: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in ledger:
        if line.causes and line.frame in PLAIN:
            found[line.job, line.frame].append(line)
    return found


DIFFERING = differing(read_ledger())


def causes_of(lines: list[Line]) -> Causes:
    """Return all causes in a frame's lines."""
    return frozenset(cause for line in lines for cause in line.causes.split())


def plain(job: str, frame: str, causes: Causes, classes: Classes) -> pd.DataFrame:
    """Compute a frame in plain Python."""
    answer = PLAIN[frame](read_job(job, floats="Q6" in causes), causes, classes)
    keys = KEYS[frame]
    return pd.DataFrame([dict(zip(keys, key, strict=True)) | row for key, row in answer.items()])


def unequal(job: str, frame: str, causes: Causes, classes: Classes) -> list[tuple[object, ...]]:
    """Return the differences from HTA's frame: column, kind, cell count and digest of the keys."""
    hta = hta_frame(job, frame)
    assert hta is not None
    ours = plain(job, frame, causes, classes)
    lines = compare(job, frame, ours, hta[[c for c in hta.columns if c in ours.columns]])
    return [line.fact[2:] for line in lines if line.kind != "equal"]


def classes_of(store: TraceStore, job: str) -> Classes:
    """Return rank ─▶ device event ─▶ our class of the event."""
    query = "SELECT rank, event_id, class FROM gpu_ops WHERE run = $run"
    found: Classes = defaultdict(dict)
    for rank, event, kind in store.sql(query, {"run": job}).rows():
        found[rank][event] = kind
    return found


@needs_numbers
@pytest.mark.parametrize(("job", "frame"), DIFFERING)
def test_the_causes_explain_the_difference(job: str, frame: str, jobs_store: TraceStore) -> None:
    """Plain Python computes HTA's frame only with all causes applied, and ours with none."""
    check_causes(job, frame, DIFFERING[job, frame], classes_of(jobs_store, job))


def check_causes(job: str, frame: str, lines: list[Line], known: Classes) -> None:
    """Check a frame computed with all causes in its lines, with none, and with all but each one."""
    causes = causes_of(lines)
    assert unequal(job, frame, causes, known) == []
    shown = set(plain(job, frame, frozenset(), known).columns) | {"*"}
    listed = [line.fact[2:] for line in lines if line.column in shown]
    assert sorted(unequal(job, frame, frozenset(), known)) == sorted(listed)
    for cause in causes:
        assert unequal(job, frame, causes - {cause}, known), f"{cause} changes nothing"
