"""Registry of figures: each is a function with the name of its analysis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import altair as alt

Figure = Callable[..., alt.TopLevelMixin]
_F = TypeVar("_F", bound=Figure)

FIGURES: dict[str, Figure] = {}
"""Name of an analysis ─▶ its figure. Complete after :mod:`hta_sql.charts` is imported."""


def figure(function: _F) -> _F:
    """Register a function as the figure of the analysis with the same name."""
    name: Any = function.__name__
    FIGURES[name] = function
    return function
