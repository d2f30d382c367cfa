"""Rule: SQL is in .sql files; Python contains only what must be assembled, in audited modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import hta_sql

AUDITED = {
    "library/sqltext.py": "statements without parameters: names and literals become SQL, quoted",
    "library/argument_sql.py": "columns of the list of arguments, names quoted",
    "library/engine_settings.py": "SET and PRAGMA",
}
"""Module that contains SQL ─▶ what it contains."""

_STATEMENT = re.compile(
    r"\s*(?:(?:SELECT|FROM|WITH|VALUES|CREATE|ALTER|DROP|INSERT|UPDATE|DELETE|COPY|ATTACH|DETACH|USE"
    r"|SET|RESET|PRAGMA|LOAD|INSTALL|DESCRIBE|SUMMARIZE|SHOW|EXPLAIN|PREPARE|EXECUTE|CALL|COMMENT)\s+\S"
    r"|(?:SELECT|FROM)\s+$|(?:BEGIN|COMMIT|ROLLBACK|CHECKPOINT)\b)"
)


def literal_problems(package: Path | None = None) -> Iterator[str]:
    """Yield a line for each SQL statement, or start of one, in a Python module.

    Args:
        package: Folder of modules; default: the package.
    """
    package = package or Path(hta_sql.__file__).parent
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).as_posix() in AUDITED:
            continue
        for line in sorted(_sql_lines(ast.parse(path.read_text(encoding="utf-8")))):
            yield (
                f"{path}:{line}: SQL in Python. Move it to sql/queries, whose statements query_sql "
                "returns; use hta_sql.library.sqltext for DDL, engine_settings for SET."
            )


def _sql_lines(tree: ast.Module) -> Iterator[int]:
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in texts else None
        if isinstance(node, ast.Constant) and isinstance(text, str) and _STATEMENT.match(text):
            yield node.lineno
