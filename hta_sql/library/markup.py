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
    """Render an object of the library: description, parameters, columns, and collapsed SQL.

    Args:
        heading: Title and name of the object.
        words: Description of the object.
        facts: Facts from the header of its file.
        tables: Column headings ─▶ rows of a table; a table without rows is omitted.
        sql: Text of the file.
    """
    return _templates().render(
        "object", heading=heading, words=words, facts=facts, tables=tables.items(), sql=sql
    )
