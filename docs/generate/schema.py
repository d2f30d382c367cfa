"""Write docs/schema.md from the comments in sql/tables: ``python -m docs.generate.schema FILE``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from docs.generate.page import cell, with_reference
from hta_sql.library.declared import Column
from hta_sql.library.objects import SqlObject, load_library

BEGIN = "<!-- reference: made by python -m docs.generate.schema; do not edit below -->"


def reference() -> str:
    """List the tables, then describe each with its columns."""
    tables = load_library().tables
    by_name = sorted(tables, key=lambda table: table.name)
    rows = [f"| [`{t.name}`](#{t.name}) | {cell(t.summary)} |" for t in by_name]
    listed = ["| table | one row is |", "|---|---|", *rows, ""]
    return "\n".join([*listed, *(line for table in tables for line in _table(table))])


def _table(table: SqlObject) -> Iterator[str]:
    yield f"## {table.name}"
    yield ""
    yield from table.full_description.splitlines()
    yield ""
    yield "| column | type | unit | meaning |"
    yield "|---|---|---|---|"
    yield from map(column_row, table.columns)
    yield ""


def column_row(column: Column) -> str:
    """Return a column as a row of a Markdown table."""
    return f"| `{column.name}` | {column.type} | {column.unit or ''} | {cell(column.doc)} |"


def main(paths: list[str]) -> None:
    """Rewrite the generated part of each file."""
    for path in map(Path, paths):
        text = path.read_text(encoding="utf-8")
        path.write_text(with_reference(text, BEGIN, reference()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
