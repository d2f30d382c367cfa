"""Advice puts the reason for exposed transfers before the transfers themselves."""

from __future__ import annotations

from pathlib import Path

from tests.judgement.kinds import planted
from tests.judgement.kineto import ingested


def test_a_slow_link_stands_above_exposed_transfers(tmp_path: Path) -> None:
    """The slow link is first, although all transfers together cost more."""
    job, machine, _ = planted("slow link, pair", 71)
    with ingested(tmp_path, job, machine) as store:
        rows = [row for row in store.run("advice").records() if row["is_worst"]]
    first, second = rows[:2]
    assert (first["rule"], second["rule"]) == ("slow_link", "exposed_transfer")
    assert first["saved_ns"] < second["saved_ns"]
