"""What HTA answered about the project's own jobs, as ``ask_hta.py`` wrote it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

ANSWERS = Path(__file__).with_name("answers")


@cache
def answers(job: str) -> dict[str, Any]:
    """All about a job or a pair: ``hta`` (its version), ``traces`` (their digest), ``frames``."""
    found: dict[str, Any] = json.loads((ANSWERS / f"{job}.json").read_text(encoding="utf-8"))
    return found


def own_frame(job: str, frame: str) -> pd.DataFrame | None:
    """Read what HTA returned; empty where it returned nothing, None where it raised."""
    answer = answers(job)["frames"][frame]
    if "error" in answer:
        return None
    return pd.DataFrame(answer["rows"], columns=pd.Index(answer["columns"]))
