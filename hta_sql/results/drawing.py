"""The function that draws a result as a chart: the package registers it, so that results do not import charts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

Draw = Callable[..., "alt.TopLevelMixin"]

_registered: list[Draw] = []
"""One entry once ``hta_sql`` is imported, which happens before any module of it is."""


def register(function: Draw) -> None:
    """Set the function that draws results; charts stand above results and cannot be imported here.

    Args:
        function: Called with a result and the options of its figure.
    """
    _registered[:] = [function]


def draw(result: object, **options: Any) -> alt.TopLevelMixin:
    """Draw a result with the registered function."""
    (function,) = _registered
    return function(result, **options)
