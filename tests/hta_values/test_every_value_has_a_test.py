"""Every value that HTA's tests expect has a test with its id in the name."""

from __future__ import annotations

import re
from pathlib import Path

from tests.hta_values.ids import IDS

TESTS = Path(__file__).parents[1]
NAMED = re.compile(r"^def test_((?:[ac]\d+_)+)", re.MULTILINE)


def numbers_of_tests() -> set[str]:
    """Return the ids in test names; ``test_a17_a18_no_counter_is_negative`` has two ids."""
    texts = [path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")]
    return {one for text in texts for name in NAMED.findall(text) for one in name.split("_") if one}


def test_every_number_has_a_test() -> None:
    """The ids in test names are exactly the ids in the list."""
    assert sorted(numbers_of_tests()) == sorted(IDS)
