"""How many examples a property is tried with: few by default, many where somebody asks for them.

``make deep`` tries every property so; one alone: ``HYPOTHESIS_PROFILE=deep pytest PATH``. Examples
are then new in each run, also where the default run takes the same ones each time.
"""

from __future__ import annotations

import os

IS_DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
DEEPER = 50


def examples(count: int) -> int:
    """Return the number of examples, given that of the default run."""
    return count * DEEPER if IS_DEEP else count
