"""Number of examples per property test: few by default, many on request.

``make deep`` tries every property with many examples. For a single property, run
``HYPOTHESIS_PROFILE=deep pytest PATH``. These examples are random in each run, even where the
default run uses fixed ones.
"""

from __future__ import annotations

import os

IS_DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
DEEPER = 50


def examples(count: int) -> int:
    """Return the number of examples to try, given the number in a default run."""
    return count * DEEPER if IS_DEEP else count
