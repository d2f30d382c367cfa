"""Digests of the ingest definitions, independent of formatting.

A trace is ingested again if it was ingested with definitions that differ from the current ones.
Comments, indentation and line breaks do not change a definition.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

from hta_sql.library.arguments import ARGUMENTS, FIELDS, extraction
from hta_sql.library.sql_files import sql_root
from hta_sql.library.vendors import category_lines

_TOKEN = re.compile(
    r"""
    (?P<comment> --[^\n]* | /\*.*?\*/ )
    | [eE]'(?:[^'\\]|''|\\.)*'          # a text with escapes
    | '(?:[^']|'')*' | "(?:[^"]|"")*"   # a text, a name
    | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$   # a text between dollars
    | \w+ | \S
    """,
    re.VERBOSE | re.DOTALL,
)


@cache
def definitions() -> str:
    """Return a hash of the definitions in sql/ingest and of the vendors' categories."""
    digest = hashlib.sha256()
    for path in sorted((sql_root() / "ingest").rglob("*.*")):
        # arguments.csv affects stored traces only through the extraction SQL generated from it.
        if path.name != ARGUMENTS:
            digest.update(definition(path).encode())
    digest.update("\n".join(category_lines()).encode())
    for table in FIELDS:
        digest.update("\n".join(tokens(extraction(table))).encode())
    return digest.hexdigest()


def definition(path: Path) -> str:
    """Return the definition in a file: tokens of a .sql file, lines of a table."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".sql":
        return "\n".join(tokens(text))
    return "\n".join(line for line in text.splitlines() if line and not line.startswith("#"))


def tokens(sql: str) -> list[str]:
    """Return the tokens of a statement, without comments and white space.

    Does not use the engine's tokenizer: a new version might split differently, so that all traces
    would be ingested again.
    """
    return [match.group() for match in _TOKEN.finditer(sql) if match["comment"] is None]
