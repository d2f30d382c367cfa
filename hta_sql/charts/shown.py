"""Charts that show themselves in a notebook: as a picture, with data for pages that bring their own Vega.

altair's own way is a script from the network, which a cluster or an air-gapped machine does not have. Here a
notebook keeps an SVG, which every page, nbconvert and GitHub can show, and Vega-Lite beside it, which JupyterLab,
VS Code and marimo draw with tooltips and zoom, where they have that version. A renderer that the user chose
(``alt.renderers.enable("png")``) is altair's matter.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import altair as alt

from hta_sql.charts.drawing.style import CONFIG
from hta_sql.charts.export import content, spec_of

if TYPE_CHECKING:
    _Base = alt.TopLevelMixin
else:
    _Base = object

_DATA = "application/vnd.vegalite.v5+json"
"""What JupyterLab, VS Code and marimo draw by themselves; our charts are the same in Vega-Lite 5 and 6."""

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
"""The name of that format; nobody fetches it."""


class _Offline(_Base):
    """What a finished chart does otherwise than altair's."""

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
        if alt.renderers.active != "default":
            return super()._repr_mimebundle_(*args, **kwargs)
        spec = spec_of(self)
        picture = content(spec, ".svg", "").decode()
        return {
            _DATA: spec | {"$schema": _SCHEMA},
            "image/svg+xml": picture,
            "text/plain": repr(self),
        }

    def save(self, fp: Any, *args: Any, **kwargs: Any) -> None:
        """Save as altair does; a page holds its scripts."""
        kind = args[0] if args else kwargs.get("format") or str(fp)
        if str(kind).lower().endswith("html"):
            kwargs = {"inline": True, **kwargs}
        super().save(fp, *args, **kwargs)

    def to_html(self, *args: Any, **kwargs: Any) -> str:
        """Write a page as altair does; it holds its scripts."""
        return super().to_html(*args, **{"inline": True, **kwargs})

    def __reduce_ex__(self, protocol: Any) -> Any:
        _, kind = type(self).__bases__
        plain: Any = object.__new__(kind)
        vars(plain).update(vars(self))
        return _shown, (plain,)

    def __repr__(self) -> str:
        spec = self.to_dict(validate=False)
        title = spec.get("title") or ""
        text = title.get("text", "") if isinstance(title, dict) else title
        return f"<Chart: {text}>"


@cache
def _offline_kind(kind: Any) -> Any:
    return type(kind.__name__, (_Offline, kind), {"__doc__": kind.__doc__})


def _shown(chart: alt.TopLevelMixin) -> alt.TopLevelMixin:
    if not isinstance(chart, _Offline):
        # An attribute of a chart would be a field of its data.
        kind: Any = type(chart)
        object.__setattr__(chart, "__class__", _offline_kind(kind))
    return chart


def themed(chart: alt.TopLevelMixin) -> alt.TopLevelMixin:
    """Give a finished chart the look that all of them have; a notebook shows it without a network."""
    return _shown(chart.properties(config=CONFIG))
