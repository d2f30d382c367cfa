"""What is said of a mutant."""

from __future__ import annotations

from typing import NamedTuple


class Verdict(NamedTuple):
    """Who found a mutant, and by which state of the test; nobody, and whom it passed."""

    who: str
    keys: tuple[str, ...]
