"""All answers about late ranks name the same ranks, whether or not they are right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hta_sql.report.answers import first_screen
from hta_sql.report.overview import LATE, overview_markup
from hta_sql.store.query.trace_store import TraceStore
from tests.judgement.kinds import planted
from tests.judgement.kineto import ingested

SEED = 62
NAMED = ("straggler", "intermittent")

KINDS = (
    "two culprits",
    "half of the ranks",
    "pp x dp",
    "intermittent",
    "no metadata",
    "noise, heavy tails",
)


def named_by_verdicts(rows: list[dict[str, Any]]) -> set[int]:
    """Return the ranks that have a straggler's verdict."""
    return {row["rank"] for row in rows if row["verdict"] in NAMED}


def named_by_replay(store: TraceStore, suspected: set[int]) -> set[int]:
    """Return the ranks that ``what_if`` makes as fast as their peers, if it names any for certain."""
    rows = store.run("what_if").records()
    changed = [row["changed_ranks"] for row in rows if row["scenario"] == "no late rank"]
    ranks = {rank for text in changed if text for rank in json.loads(text)}
    return set() if ranks <= suspected else ranks


def named_by_report(store: TraceStore) -> set[int]:
    """Return the ranks that the first screen of the report names for certain."""
    text = str(overview_markup(first_screen(store, {}), set()))
    found = re.findall(r"(?:Straggler|Intermittent straggler): rank (\d+)", text)
    return {int(rank) for rank in found}


@pytest.mark.parametrize("kind", KINDS)
def test_all_answers_name_the_same_ranks(kind: str, tmp_path: Path) -> None:
    """The verdict, its copies in other analyses, the replay, advice and the report agree."""
    job, machine, _ = planted(kind, SEED)
    with ingested(tmp_path, job, machine) as store:
        rows = store.run("stragglers").records()
        verdicts = {row["rank"]: row["verdict"] for row in rows}
        late = named_by_verdicts(rows)
        suspected = {rank for rank, verdict in verdicts.items() if verdict == "suspected"}
        overview = store.run("cluster_overview").records()
        assert {row["rank"]: row["straggler_verdict"] for row in overview} == {
            row["rank"]: verdicts[row["rank"]] for row in overview
        }
        advised = [row for row in store.run("advice").records() if row["rule"] == "late_rank"]
        assert {row["rank"] for row in advised} == late
        assert named_by_replay(store, suspected) == late
        reported = named_by_report(store)
        assert reported <= late
        assert len(reported) == min(len(late), LATE)
