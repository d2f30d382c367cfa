"""Tests that plans do not grow: on a small store, planning is most of the time of an analysis."""

from __future__ import annotations

from pathlib import Path

from tests.pinned.plans import pinned_sizes, plan_sizes, write_store

MORE_PCT, MORE_OPERATORS = 3, 4
"""By how much a plan may differ from the pinned one, as another engine chooses other joins."""


def test_no_plan_grows(tmp_path: Path) -> None:
    """A larger plan needs a reason: ``python -m tests.pinned.plans`` shows the change in Git."""
    pinned, found = pinned_sizes(), plan_sizes(write_store(tmp_path))
    assert found.keys() == pinned.keys()
    grown = {
        name: f"{pinned[name]} operators grew to {size}"
        for name, size in found.items()
        if size > pinned[name] * (1 + MORE_PCT / 100) + MORE_OPERATORS
    }
    assert not grown
    assert sum(found.values()) <= sum(pinned.values()) * (1 + MORE_PCT / 100)
