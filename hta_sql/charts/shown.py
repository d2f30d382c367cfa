"""Displays charts in a notebook: as a picture, with data for pages that bring their own Vega.

By default, altair loads a script from the network, which fails on clusters and air-gapped machines.
Here a notebook stores an SVG, which every page, nbconvert and GitHub can display. It also stores
Vega-Lite, which JupyterLab, VS Code and marimo draw with tooltips and zoom if they support its
version. A renderer chosen by the user (``alt.renderers.enable("png")``) is left to altair.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import altair as alt

from hta_sql.charts.drawing.chart import share
from hta_sql.charts.drawing.style import CONFIG
from hta_sql.charts.export import content, spec_of

if TYPE_CHECKING:
    _Base = alt.TopLevelMixin
else:
    _Base = object

_DATA = "application/vnd.vegalite.v5+json"
"""MIME type that JupyterLab, VS Code and marimo draw; our charts are valid in Vega-Lite 5 and 6."""

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
"""Schema identifier of that format; it is never fetched."""


class _Offline(_Base):
    """Overrides of altair's methods that display and export a finished chart."""

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
        """Save like altair, but with embedded scripts in a page."""
        kind = args[0] if args else kwargs.get("format") or str(fp)
        if str(kind).lower().endswith("html"):
            kwargs = {"inline": True, **kwargs}
        super().save(fp, *args, **kwargs)

    def to_html(self, *args: Any, **kwargs: Any) -> str:
        """Return a page like altair, but with embedded scripts."""
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
        # An attribute of a chart would become a field of its data.
        kind: Any = type(chart)
        object.__setattr__(chart, "__class__", _offline_kind(kind))
    return chart


def themed(chart: alt.TopLevelMixin) -> alt.TopLevelMixin:
    """Apply the common style to a finished chart; notebooks display it offline."""
    figure: Any = chart
    figure.config = CONFIG  # properties() would validate it, which takes a tenth of the time
    share(figure, shared=False)
    return _shown(figure)
