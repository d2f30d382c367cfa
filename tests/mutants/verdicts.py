"""The verdict on a mutant."""

from __future__ import annotations

from typing import NamedTuple


class Verdict(NamedTuple):
    """The test that killed a mutant, and its key; for a survivor, the keys of all passed tests."""

    who: str
    keys: tuple[str, ...]
