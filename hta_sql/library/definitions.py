"""What the ingest files define, told apart from how they are written.

A trace is read again when the definitions by which it was ingested are others than those of today.
A comment, an indent or another line break in one of the files defines nothing.
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
    """Hash what the files of sql/ingest and the categories of vendors define."""
    digest = hashlib.sha256()
    for path in sorted((sql_root() / "ingest").rglob("*.*")):
        # Of the arguments only what the extraction makes of them is defined for a trace.
        if path.name != ARGUMENTS:
            digest.update(definition(path).encode())
    digest.update("\n".join(category_lines()).encode())
    for table in FIELDS:
        digest.update("\n".join(tokens(extraction(table))).encode())
    return digest.hexdigest()


def definition(path: Path) -> str:
    """Return what a file defines: the tokens of a statement, the lines of a table."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".sql":
        return "\n".join(tokens(text))
    return "\n".join(line for line in text.splitlines() if line and not line.startswith("#"))


def tokens(sql: str) -> list[str]:
    """List the words, texts and signs of a statement, without comments and white space.

    Not by the engine's own tokenizer: another version of it may cut elsewhere, and all traces
    would be read again for that.
    """
    return [match.group() for match in _TOKEN.finditer(sql) if match["comment"] is None]
