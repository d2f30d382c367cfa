"""Proof that critical path lengths differ from HTA's because of the causes in the ledger.

HTA's path is computed again in plain Python from the raw trace. With all causes that the ledger
lists for its length, it is as long as HTA's path on every rank. With one cause fewer, it is not.
Without any cause, it is as long as our path.
"""

from __future__ import annotations

import pytest

from hta_sql import TraceStore
from hta_sql.critical_path import critical_path
from hta_sql.errors import ParameterError
from tests.parity.comparison import FLOAT_US
from tests.parity.hta_answers import hta_frame
from tests.parity.jobs import HTA, JOBS
from tests.parity.ledger import Rule, read_ledger
from tests.parity.our_answers import WINDOWS
from tests.parity.own.jobs import OWN_JOBS
from tests.parity.plain_path import Lanes, Path, window
from tests.parity.plain_trace import Causes, read_job

needs_numbers = pytest.mark.skipif(not HTA.is_dir(), reason="HTA's numbers are not here")

TOO_LARGE = {"nanogpt_8rank_h100", "sam_fast_a100", "xdit_sd35_mi300x"}
"""Jobs that take minutes in plain Python; their causes are verified by rules."""

TIES = {
    "dlrm_8rank_v100",
    "hta_trace_diff_control",
    "hta_trace_diff_test",
    "torchrec_a2a_5_qcomm_run0",
    "torchrec_a2a_5_run0",
}
"""Jobs with times in whole microseconds, within which the event order is a convention."""

TIED = 2e-4
"""Maximum effect of equal times on a path length, as a share."""

EQUAL = 1e-6
"""Relative tolerance of a length that the ledger lists as equal."""

UNSOLVED = {("hta_cp_alexnet", "critical_path_full")}
"""Jobs with two longest paths, one with an edge of -1 µs; HTA finds the other one (Q55)."""

LANES = """
SELECT b.rank, b.pid, b.tid, min(f.pid), min(f.tid)
FROM cpu_ops AS b
JOIN cpu_ops AS f ON f.run = b.run AND f.rank = b.rank AND f.event_id = b.fwd_op_id
WHERE b.run = $run
GROUP BY ALL
HAVING count(DISTINCT (f.pid, f.tid)) = 1 AND (min(f.pid), min(f.tid)) <> (b.pid, b.tid)
"""


def has_length(job: str, name: str) -> bool:
    """Return whether HTA found a path."""
    frame = hta_frame(job, f"{name}_length") if HTA.is_dir() or job in OWN_JOBS else None
    return frame is not None and len(frame) > 0 and (job, name) not in UNSOLVED


CASES = [
    (job, name)
    for job in JOBS
    for name in WINDOWS
    if job not in TOO_LARGE and has_length(job, name)
]


def listed(job: str, name: str, ledger: list[Rule]) -> Causes:
    """Return the causes that a ledger lists for a path length; none if the length is equal."""
    return frozenset(
        cause
        for rule in ledger
        if (rule.job, rule.frame) == (job, f"{name}_length")
        for cause in rule.causes.split()
    )


def lengths(job: str, name: str, causes: Causes, lanes: dict[int, Lanes]) -> dict[int, float]:
    """Return rank ─▶ path length in plain Python [µs], 0 if there is no such window."""
    read = read_job(job, floats="Q6" in causes)
    annotation, instance = WINDOWS[name]
    found = {}
    for rank in read.ranks:
        chosen = window(read, rank, causes, annotation, instance or 0)
        path = Path(chosen, causes, lanes.get(rank, {})) if chosen is not None else None
        found[rank] = path.length() if path is not None else 0.0
    return found


def ours(store: TraceStore, job: str, name: str, ranks: list[int]) -> dict[int, float]:
    """Return rank ─▶ length of our path [µs]."""
    annotation, instance = WINDOWS[name]
    found = {}
    for rank in ranks:
        try:
            graph = critical_path(
                store,
                rank,
                job,
                annotation=annotation or None,
                first_instance=instance or 0,
                infer_syncs=False,
            )
        except ParameterError:  # no such instance
            graph = None
        found[rank] = 0.0 if graph is None else graph.critical_path_length_ns / 1000
    return found


@needs_numbers
@pytest.mark.parametrize(("job", "name"), CASES)
def test_the_causes_explain_the_length(job: str, name: str, jobs_store: TraceStore) -> None:
    """Plain Python computes HTA's length only with all causes applied, and ours with none."""
    check_length(job, name, jobs_store, listed(job, name, read_ledger()))


def check_length(job: str, name: str, store: TraceStore, causes: Causes) -> None:
    """Check the path computed with all causes, with none, and with all but each one.

    HTA adds up thousands of floats in a different order, so the tolerance is a nanosecond.
    """
    frame = hta_frame(job, f"{name}_length")
    assert frame is not None
    hta = dict(zip(map(int, frame["rank"]), map(float, frame["cp_weight"]), strict=True))
    lanes: dict[int, Lanes] = {}
    for rank, pid, tid, forward_pid, forward_tid in store.sql(LANES, {"run": job}).rows():
        lanes.setdefault(rank, {})[pid, tid] = (forward_pid, forward_tid)
    equal = 0 if causes else EQUAL

    def is_htas(causes: Causes) -> bool:
        found = lengths(job, name, causes, lanes)
        return all(
            abs(found[rank] - length) < 2 * FLOAT_US + equal * length
            for rank, length in hta.items()
        )

    assert is_htas(causes)
    for cause in causes:
        assert not is_htas(causes - {cause}), f"{cause} changes nothing"
    mine = ours(store, job, name, list(hta))
    plain = lengths(job, name, frozenset(), lanes)
    tolerance = TIED if job in TIES else 0
    for rank, length in mine.items():
        assert plain[rank] == pytest.approx(length, rel=tolerance, abs=FLOAT_US), rank
