"""Single-mark charts that are quick to build, and the conversion of table rows to chart data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

_DIGITS = 6


class Chart(alt.Chart):
    """A chart with one mark, as a part of a figure.

    Whenever a chart becomes part of another one, altair copies all options of its axes, scales and
    marks, most of which are unset. Copies of this class share their encoding instead, because
    nothing changes it in place.
    """

    def __deepcopy__(self, memo: Any = None) -> Self:
        """Copy the chart and its lists; the copy shares everything else."""
        lists = {key: list(part) for key, part in self._kwds.items() if isinstance(part, list)}
        return self.__class__(**{**self._kwds, **lists})

    def encode(self, *args: Any, **channels: Any) -> Self:
        """Set channels, choosing their class here, because altair would try all of its classes."""
        return super().encode(*args, **{key: _channel(key, part) for key, part in channels.items()})

    def properties(self, **given: Any) -> Self:
        """Set properties without validating them: the tests validate every figure."""
        changed = self.copy(deep=False)
        for name, value in given.items():
            setattr(changed, name, value)
        return changed


def _channel(name: str, given: Any) -> Any:
    kind = name[0].upper() + name[1:]
    if isinstance(given, str):
        return getattr(alt, kind)(given)
    if isinstance(given, dict) and "value" in given:
        return getattr(alt, f"{kind}Value")(**given)
    return given


def share(figure: alt.TopLevelMixin, *, shared: bool) -> None:
    """Convert a figure's parts to :class:`Chart`, or back to altair's charts."""
    old, new = (alt.Chart, Chart) if shared else (Chart, alt.Chart)
    if type(figure) is old:
        object.__setattr__(figure, "__class__", new)
    for name in ("layer", "hconcat", "vconcat", "concat", "spec"):
        parts = getattr(figure, name, None)
        for part in parts if isinstance(parts, list) else [parts]:
            if isinstance(part, alt.TopLevelMixin):
                share(part, shared=shared)


def rows_of(table: pd.DataFrame) -> tuple[dict[str, Any], ...]:
    """Return the rows of a table as JSON values; unknown values are None.

    Fractions are rounded to six digits, which halves the size and is enough for a tooltip.
    """
    columns = [
        [
            None if unknown else _short(value)
            for value, unknown in zip(column.tolist(), column.isna(), strict=True)
        ]
        for _, column in table.items()
    ]
    names = [str(name) for name in table]
    # A tuple, because altair copies a list of rows whenever a chart becomes part of another.
    return tuple(dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _short(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
