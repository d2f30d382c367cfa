"""Figure of the most expensive source lines."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.sides import side_panels
from hta_sql.charts.drawing.style import headed, nothing

SIDES = {
    "device": {"self": "device_self_ns", "backward pass": "backward_device_self_ns"},
    "host": {"self": "host_self_ns"},
}
"""Side ─▶ part ─▶ column with the time of a line."""


@figure
def source_lines(table: pd.DataFrame, *, top: int = 15) -> alt.TopLevelMixin:
    """Draw the source lines with the most self time, one panel for the device and one for the host.

    Ranks are summed; ``top`` applies to each panel.
    """
    panels = side_panels(table, "frame", SIDES, top)
    title = "Most expensive source lines"
    if not panels:
        return nothing(title, "The traces have no Python frames. Profile with with_stack=True.")
    notes = (
        "Self time, summed over all ranks: time in a line, without the lines that it calls. Built-in functions count for their caller.",
        "Device: operations launched by the line, and by the backward pass of its operators.",
    )
    return alt.vconcat(*panels, title=headed(title, *notes))
