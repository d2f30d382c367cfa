"""The verdict on a mutant."""

from __future__ import annotations

from typing import NamedTuple


class Verdict(NamedTuple):
    """The test that killed a mutant, and its state; for a survivor, the tests that it passed."""

    who: str
    keys: tuple[str, ...]
