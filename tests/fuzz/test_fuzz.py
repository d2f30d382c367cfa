"""Read a few corrupt traces of a fixed seed; ``make fuzz`` makes others for any time."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.fuzz.fields import field_trace
from tests.fuzz.mutations import mutated, seeds
from tests.fuzz.properties import check_ingests_agree, check_walk, check_ways_agree
from tests.ingestion.readers import needs_native


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_walked_as_the_whole_is(seed: int) -> None:
    """Walking a text in parts gives the same as walking the whole, wherever a read ends."""
    random, wholes = Random(seed), seeds()
    for _ in range(100):
        check_walk(random, mutated(random, wholes))


@pytest.mark.parametrize("seed", range(8))
def test_ways_agree(seed: int, tmp_path: Path) -> None:
    """The result does not depend on the way in which a file is read, whatever its contents."""
    random, wholes = Random(seed), seeds()
    path = tmp_path / "trace.json"
    path.write_bytes(mutated(random, wholes))
    check_ways_agree(random, path, is_deep=True)


@needs_native
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_readers_make_the_same_store_of_odd_fields(seed: int, tmp_path: Path) -> None:
    """All tables and some analyses agree on null, missing and odd names, categories, phases and ids."""
    random = Random(seed)
    path = tmp_path / "trace.json"
    path.write_bytes(field_trace(random))
    check_ingests_agree(random, path)
