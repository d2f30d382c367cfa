"""Number of examples per property: few by default, many on request.

``make deep`` tries every property with many examples; for one alone: ``HYPOTHESIS_PROFILE=deep pytest PATH``.
Examples are then random in each run, even if the default run uses fixed ones.
"""

from __future__ import annotations

import os

IS_DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
DEEPER = 50


def examples(count: int) -> int:
    """Return the number of examples, scaled from that of the default run."""
    return count * DEEPER if IS_DEEP else count
