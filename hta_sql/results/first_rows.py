"""The first rows of a result, for a table on a screen.

Does not use Arrow, whose import takes longer than computing such rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hta_sql.library.objects import SqlObject


@dataclass(frozen=True)
class FirstRows:
    """Rows as Python values.

    Attributes:
        analysis: The analysis of the rows.
        given: Parameters that the caller gave.
        columns: Name of each column, and whether it is numeric.
        rows: The first rows.
        total: Number of all rows.
    """

    analysis: SqlObject | None
    given: tuple[str, ...]
    columns: tuple[tuple[str, bool], ...]
    rows: list[tuple[Any, ...]]
    total: int

    def head(self, max_rows: int) -> list[tuple[str, bool, list[Any]]]:
        """Return (name, whether numeric, first values) of each column."""
        shown = self.rows[:max_rows]
        return [
            (name, is_number, [row[index] for row in shown])
            for index, (name, is_number) in enumerate(self.columns)
        ]

    def __len__(self) -> int:
        return self.total
