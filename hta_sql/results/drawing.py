"""Registry of the function that draws charts, so that results need not import charts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

Draw = Callable[..., "alt.TopLevelMixin"]

_registered: list[Draw] = []
"""The registered function; importing ``hta_sql`` or any of its modules registers it."""


def register(function: Draw) -> None:
    """Register the function that draws results; this layer must not import charts itself.

    Args:
        function: Called with a result and the options of its figure.
    """
    _registered[:] = [function]


def draw(result: object, **options: Any) -> alt.TopLevelMixin:
    """Draw a result with the registered function."""
    (function,) = _registered
    return function(result, **options)
