"""HTML documentation of an analysis, a table or a macro, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from markupsafe import Markup

from hta_sql.templates import Templates

Row = tuple[str | None, ...]


@cache
def _templates() -> Templates:
    return Templates(Path(__file__).parent / "templates")


def object_markup(
    heading: str,
    words: str,
    facts: Mapping[str, str],
    tables: Mapping[tuple[str, ...], Sequence[Row]],
    sql: str,
) -> Markup:
    """Render an object of the library: description, parameters and columns, and its SQL folded.

    Args:
        heading: Its title and name.
        words: Its description.
        facts: The facts of its header.
        tables: Headings ─▶ rows of each table; a table without rows is omitted.
        sql: Its text.
    """
    return _templates().render(
        "object", heading=heading, words=words, facts=facts, tables=tables.items(), sql=sql
    )
