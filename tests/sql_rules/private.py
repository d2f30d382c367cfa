"""Rule: the name of a shipped macro starts with _ if and only if the macro has one caller."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import hta_sql
from hta_sql.library.objects import Library
from hta_sql.library.rules.problem import Problem, located
from hta_sql.library.sql_files import sql_root

_COMMENT = re.compile(r"--[^\n]*")
_CALLED = re.compile(r"\blib\.(\w+)")
_TEXT = re.compile(r"'((?:[^']|'')*)'")


def private_problems(library: Library) -> Iterator[Problem]:
    """Yield a problem for each macro whose name contradicts its number of callers."""
    callers = _callers(library)
    for macro in library.macros:
        count = len(callers[macro.name] - {str(macro.path)})
        public = macro.name.lstrip("_")
        if count == 1 and macro.name == public:
            yield located(
                macro, ("", f"it has one caller; call it lib._{public}, in the file's name too")
            )
        elif count != 1 and macro.name != public:
            said = f"it has {count} callers, and only a macro with one starts with _"
            yield located(macro, ("", f"{said}; call it lib.{public}, in the file's name too"))


def _callers(library: Library) -> dict[str, set[str]]:
    """Return the files that call each macro.

    All versions of an analysis count as one caller. If a result or a page shows a macro, ``a user``
    is among its callers.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for about in (*library.tables, *library.macros, *library.derived, *library.analyses):
        text = _COMMENT.sub("", about.text)
        # The next version of a file calls what this one calls, and a released file does not change.
        caller = str(about.path.with_stem(about.base_name))
        for name in _CALLED.findall(text):
            found[name].add(caller)
        for name in _CALLED.findall(" ".join(_TEXT.findall(text))):
            found[name].add("a user")
    package = Path(hta_sql.__file__).parent
    for path in (*package.rglob("*.py"), *(sql_root() / "queries").glob("*.sql")):
        for name in _CALLED.findall(path.read_text(encoding="utf-8")):
            found[name].add(str(path))
    # The pages in docs/analyses list all macros, and so are no callers.
    for page in (sql_root().parent / "docs").glob("*.md"):
        for name in _CALLED.findall(page.read_text(encoding="utf-8")):
            found[name] |= {"a user", page.name}
    return found
