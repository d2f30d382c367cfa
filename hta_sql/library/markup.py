"""What an analysis, a table or a macro takes, returns and means, as a notebook shows it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping

Row = tuple[str | None, ...]


def object_markup(
    name: str,
    words: str,
    facts: Mapping[str, str],
    tables: Mapping[tuple[str, ...], Iterable[Row]],
    sql: str,
) -> str:
    """Write an object of the library: its words, its parameters and columns, its SQL folded.

    Args:
        name: Its name.
        words: Its description.
        facts: What its header says besides.
        tables: Headings and rows of each table.
        sql: Its text.
    """
    told = "; ".join(f"{key}: {value}" for key, value in facts.items())
    parts = [
        f"<h4>{html.escape(name)}</h4>",
        f"<p>{html.escape(words)}</p>",
        f"<p>{html.escape(told)}</p>" if told else "",
        *(_table(head, rows) for head, rows in tables.items()),
        f"<details><summary>SQL</summary><pre>{html.escape(sql)}</pre></details>",
    ]
    return "".join(parts)


def _table(head: tuple[str, ...], rows: Iterable[Row]) -> str:
    cells = ("".join(f"<td>{html.escape(cell or '')}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    heads = "".join(f"<th>{name}</th>" for name in head)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>" if body else ""
