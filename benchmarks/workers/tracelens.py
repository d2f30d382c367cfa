"""Load a trace in AMD's TraceLens and compute its operator table."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.workers.laps import Laps, request


def main(asked: dict[str, Any]) -> None:
    """Load the files one after the other."""
    # Imported by name, because the environment of the type checker does not have it.
    analyzer = importlib.import_module("TraceLens").TreePerfAnalyzer
    laps = Laps()
    for path in asked["files"]:
        analyzer.from_file(profile_filepath=path)
    laps.lap("total")
    laps.print()


if __name__ == "__main__":
    main(request())
