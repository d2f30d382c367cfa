"""Fuzz tests with a few fixed seeds; ``make fuzz`` runs more."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.fuzz.artifacts import main as odd_side_files
from tests.fuzz.fields import field_trace
from tests.fuzz.mutations import mutated, seeds
from tests.fuzz.properties import check_ingests_agree, check_walk, check_ways_agree
from tests.ingestion.readers import needs_native


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_walked_as_the_whole_is(seed: int) -> None:
    """The spans of a truncated text equal the first spans of the whole text."""
    random, wholes = Random(seed), seeds()
    for _ in range(100):
        check_walk(random, mutated(random, wholes))


@pytest.mark.parametrize("seed", range(8))
def test_ways_agree(seed: int, tmp_path: Path) -> None:
    """The result does not depend on how a file is split into chunks and batches."""
    random, wholes = Random(seed), seeds()
    path = tmp_path / "trace.json"
    path.write_bytes(mutated(random, wholes))
    check_ways_agree(random, path, is_deep=True)


@pytest.mark.parametrize("seed", range(2))
def test_odd_side_files_end_no_process(seed: int) -> None:
    """Dumps, snapshots and execution traces cost no more memory and time than their size allows."""
    assert odd_side_files(8, f"test {seed}") == 0


@needs_native
@pytest.mark.slow(reason="fuzz")
@pytest.mark.parametrize("seed", range(6))
def test_readers_make_the_same_store_of_odd_fields(seed: int, tmp_path: Path) -> None:
    """Both readers agree on events with null, missing and odd fields."""
    random = Random(seed)
    path = tmp_path / "trace.json"
    path.write_bytes(field_trace(random))
    check_ingests_agree(random, path)
