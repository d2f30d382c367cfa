"""Proof that frames differ from HTA's because of the causes in the ledger.

Each frame is computed again in plain Python from the raw trace. With all causes applied as quirks,
it equals HTA's frame. Without any cause, it equals ours. If any single cause is left out, it
differs from HTA's, so each cause is needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pandas as pd
import pytest

from hta_sql import TraceStore
from tests.parity import our_answers, plain_time
from tests.parity.comparison import Line, compare
from tests.parity.hta_answers import KEYS, hta_frame
from tests.parity.jobs import HTA
from tests.parity.ledger import Rule, read_ledger
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


def differing(ledger: list[Rule]) -> dict[tuple[str, str], Causes]:
    """Return (job, frame) ─▶ causes in a ledger."""
    return {
        (rule.job, rule.frame): frozenset(rule.causes.split())
        for rule in ledger
        if rule.frame in PLAIN
    }


DIFFERING = differing(read_ledger())

our_frames = lru_cache(maxsize=1)(our_answers.our_frames)
"""Our frames of a job; the cases of a job follow each other."""


def plain(job: str, frame: str, causes: Causes, classes: Classes) -> pd.DataFrame:
    """Compute a frame in plain Python."""
    answer = PLAIN[frame](read_job(job, floats="Q6" in causes), causes, classes)
    keys = KEYS[frame]
    return pd.DataFrame([dict(zip(keys, key, strict=True)) | row for key, row in answer.items()])


def unequal(
    job: str, frame: str, causes: Causes, classes: Classes, other: pd.DataFrame | None
) -> list[Line]:
    """Return the differences of the plain frame from another frame."""
    assert other is not None
    mine = plain(job, frame, causes, classes)
    lines = compare(job, frame, mine, other[[c for c in other.columns if c in mine.columns]])
    return [line for line in lines if line.kind != "equal"]


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
    check_causes(job, frame, DIFFERING[job, frame], jobs_store)


def check_causes(job: str, frame: str, causes: Causes, store: TraceStore) -> None:
    """Check a frame computed with all its causes, with none, and with all but each one."""
    known, hta = classes_of(store, job), hta_frame(job, frame)
    assert unequal(job, frame, causes, known, hta) == []
    ours = our_frames(Path(store.path), job)[frame]
    assert unequal(job, frame, frozenset(), known, ours) == []
    for cause in causes:
        assert unequal(job, frame, causes - {cause}, known, hta), f"{cause} changes nothing"
