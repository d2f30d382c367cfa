"""Figure that shows the cost of nn.Module instances."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.sides import side_panels
from hta_sql.charts.drawing.style import headed, nothing

PASSES = {
    side: {"forward": f"{side}_self_ns", "backward": f"backward_{side}_self_ns"}
    for side in ("device", "host")
}
"""Side ─▶ pass ─▶ column with the time of a module."""


@figure
def modules(table: pd.DataFrame, *, top: int = 15) -> alt.TopLevelMixin:
    """Draw the modules with the most self time, one panel for the device and one for the host.

    Ranks are summed; ``top`` applies to each panel.
    """
    panels = side_panels(table, "path", PASSES, top)
    title = "The most expensive modules"
    if not panels:
        return nothing(title, "No module took any time.")
    notes = (
        "Self time, summed over all ranks: time in a module, without the modules inside it.",
        "Backward: the backward pass of its operators, including recomputation.",
    )
    return alt.vconcat(*panels, title=headed(title, *notes))
