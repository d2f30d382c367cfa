"""A kernel that waits for other ranks is recognized by its times if its name says nothing of it."""

from __future__ import annotations

import json
from pathlib import Path

import hta_sql
from hta_sql.store.query.trace_store import TraceStore
from tests.judgement.job import Fault, Job
from tests.judgement.kineto import hide, write
from tests.judgement.programs import simulate

JOB = Job(framework="tensor", ranks=4, steps=8, seed=8, faults=(Fault("slower clocks", (2,), 1.2),))


def ingested(folder: Path, hidden: str = "") -> TraceStore:
    """Ingest the job; every second collective has the name ``hidden`` and no metadata, if given."""
    for path in write(folder / "traces", JOB, simulate(JOB)).values():
        trace = json.loads(Path(path).read_text())
        for event in trace["traceEvents"]:
            if hidden and event["args"].get("Seq", 1) % 2 == 0:
                hide(event, hidden)
        Path(path).write_text(json.dumps(trace))
    return hta_sql.ingest(folder / "traces", folder / "job.store")


def waits(store: TraceStore) -> list[int]:
    """Return the exposed wait of each rank in all steps [ns]."""
    rows = store.sql(
        "SELECT sum(exposed_wait_ns) FROM step_parts WHERE NOT is_common GROUP BY rank ORDER BY rank"
    )
    return [int(wait) for (wait,) in rows.rows()]


def test_hidden_waits_are_waits(tmp_path: Path) -> None:
    """Each rank waits as long as if all collectives had their names, and the straggler is named."""
    with ingested(tmp_path / "named") as store:
        expected = waits(store)
    with ingested(tmp_path / "hidden", "fused_kernel") as store:
        found = waits(store)
        late = [row["rank"] for row in store.run("stragglers").records() if row["is_straggler"]]
    assert found == expected
    assert max(expected) > 1_000_000
    assert late == [2]
