"""Exports call chains to speedscope: flame graphs of host and device time per rank."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hta_sql._version import __version__
from hta_sql.errors import StoreError
from hta_sql.store.query.trace_store import TraceStore
from hta_sql.traces.writing import made_folder, replacing

MIN_PCT = 0.001
"""Chains below this share of a rank's time [%] are added to their caller.

This keeps the size of the file at megabytes instead of gigabytes.
"""

OTHER = "(other)"
"""Name of time without a chain: the launch is not in the trace, or the outermost call is tiny."""

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_LINE = re.compile(r"(?P<file>.+)\((?P<line>\d+)\): .*")


def write_speedscope(
    store: TraceStore, path: Path, runs: Sequence[str] = (), ranks: Sequence[int] = ()
) -> dict[str, int]:
    """Write the analysis ``folded_stacks`` for https://www.speedscope.app.

    Args:
        store: The opened store.
        path: Path of the file, which replaces an existing file when it is complete.
        runs: Runs; empty: all.
        ranks: Ranks; empty: all.

    Returns:
        Profile name ─▶ number of chains. Each rank has a profile of device time and another of host
        time. Chains with negative time, which overlapping events can cause, are omitted.

    Raises:
        StoreError: The path is a folder.
        RankError: A requested run or rank is not in the store.
    """
    if path.is_dir():
        raise StoreError(f"{str(path)!r} is a folder; speedscope is written to a single file.")
    scope: dict[str, Any] = {"runs": list(runs) or None, "ranks": list(ranks) or None}
    found = store.run("folded_stacks", min_pct=MIN_PCT, **scope)
    frames: dict[str, int] = {}
    columns = [found.columns.index(name) for name in ("run", "rank", "stack")]
    rows = [(tuple(row[at] for at in columns), row) for row in found.rows()]
    profiles = []
    for side in ("device", "host"):
        at = found.columns.index(f"{side}_ns")
        profiles += list(_profiles(side, ((*key, row[at]) for key, row in rows), frames))
    profiles.sort(key=lambda profile: str(profile["name"]))
    text = {
        "$schema": _SCHEMA,
        "exporter": f"hta-sql {__version__}",
        "name": path.name,
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(name) for name in frames]},
        "profiles": profiles,
    }
    with made_folder(path.parent), replacing(path) as partial:
        partial.write_text(json.dumps(text, ensure_ascii=False), encoding="utf-8")
    return {profile["name"]: len(profile["samples"]) for profile in profiles}


def _profiles(
    side: str, rows: Iterable[tuple[str, int, str | None, int]], frames: dict[str, int]
) -> Iterator[dict[str, Any]]:
    """Yield the profile of each rank that has time on this side; number new names in ``frames``."""
    found: dict[tuple[str, int], tuple[list[list[int]], list[int]]] = {}
    for run, rank, stack, ns in rows:
        if ns > 0:
            samples, weights = found.setdefault((run, rank), ([], []))
            names = (stack or OTHER).split(";")
            samples.append([frames.setdefault(name, len(frames)) for name in names])
            weights.append(ns)
    for (run, rank), (samples, weights) in found.items():
        yield {
            "type": "sampled",
            "name": f"{run}, rank {rank}: {side} time",
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": sum(weights),
            "samples": samples,
            "weights": weights,
        }


def _frame(name: str) -> dict[str, object]:
    if found := _LINE.fullmatch(name):
        return {"name": name, "file": found["file"], "line": int(found["line"])}
    return {"name": name}
