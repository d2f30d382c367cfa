"""Provide MemoryAnalysis: torch's raw memory timeline, with HTA's methods."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from hta_sql.hta.methods.showing import display, in_notebook
from hta_sql.traces.side_files import memory_timeline

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

__all__ = ["MemoryAnalysis"]

log = logging.getLogger(__name__)


class MemoryAnalysis:
    """Memory use of a training step by category.

    Args:
        path: File that ``profiler.export_memory_timeline("....raw.json.gz")`` wrote.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def get_memory_timeline(self) -> pd.DataFrame:
        """Return the bytes in use by category after each point in time.

        Returns:
            ``ts`` (ns) and ``parameter_bytes, optimizer_state_bytes, input_bytes, temporary_bytes,
            activation_bytes, gradient_bytes, autograd_bytes, unknown_bytes``.

        Raises:
            TraceNotFoundError: The file does not exist.
            TraceFormatError: The file is not a raw memory timeline.
        """
        frame: pd.DataFrame = memory_timeline(self.path).to_pandas()
        return frame

    def plot_memory_timeline(self, save_graph: bool = False) -> alt.TopLevelMixin:
        """Draw the memory use as a stacked area chart over time.

        Args:
            save_graph: Whether to save ``images/memory_plot.png`` in the working directory;
                otherwise a notebook displays the chart.

        Returns:
            The chart.
        """
        from hta_sql.charts.memory_file import (  # noqa: PLC0415 - altair is needed for charts only
            memory_by_category,
        )
        from hta_sql.charts.shown import themed  # noqa: PLC0415

        chart = themed(memory_by_category(self.get_memory_timeline()))
        if save_graph:
            path = Path("images") / "memory_plot.png"
            path.parent.mkdir(exist_ok=True)
            chart.save(str(path), ppi=144)
            log.info("Saved the memory timeline: %s", path)
        elif in_notebook():
            display(chart)
        return chart
