"""HTA's results for the project's own jobs, as ``ask_hta.py`` wrote them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

ANSWERS = Path(__file__).with_name("answers")


@cache
def answers(job: str) -> dict[str, Any]:
    """Return all results for a job or pair: HTA's version, a trace digest, and the frames."""
    found: dict[str, Any] = json.loads((ANSWERS / f"{job}.json").read_text(encoding="utf-8"))
    return found


def own_frame(job: str, frame: str) -> pd.DataFrame | None:
    """Return HTA's frame: empty if HTA returned nothing, and None if it raised an error."""
    answer = answers(job)["frames"][frame]
    if "error" in answer:
        return None
    return pd.DataFrame(answer["rows"], columns=pd.Index(answer["columns"]))
