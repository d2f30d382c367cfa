"""Check every file of the SQL library against its rules and against the engine.

``python -m tests.sql_rules.run`` prints problems with remedies;
``--freeze`` locks the analyses of a release (see frozen.py). Most rules are in
:mod:`hta_sql.library.rules`. The following apply only to the shipped library:

shipped.py   topics, headers, derived tables
messages.py  sentences are in sql/messages, with the codes and placeholders that analyses use
stored.py    the list of stored columns is current
literals.py  Python contains no SQL
private.py   macros with one caller start with _
frozen.py    a released file does not change
"""

from __future__ import annotations

from pathlib import Path

from hta_sql.errors import LibraryError
from hta_sql.library.objects import Library, parse_library
from hta_sql.library.rules.engine import engine_problems
from hta_sql.library.rules.text import text_problems
from hta_sql.library.sql_files import sql_root
from tests.sql_rules.frozen import frozen_problems
from tests.sql_rules.literals import literal_problems
from tests.sql_rules.messages import message_problems
from tests.sql_rules.private import private_problems
from tests.sql_rules.shipped import FACTS, shipped_problems
from tests.sql_rules.stored import stored_problems


def find_problems(root: Path | None = None, golden: Path | None = None) -> list[str]:
    """Return one line per problem of a library.

    Args:
        root: Folder laid out like sql/; default: that of this installation.
        golden: Folder of the golden tests; default: tests/golden next to it, if it exists.
    """
    root = root or sql_root()
    golden = golden or root.parent / "tests" / "golden"
    try:
        library = parse_library(root)
    except LibraryError as error:
        return [_relative(str(error), root)]
    files = (*library.tables, *library.macros_in_order, *library.derived, *library.analyses)
    tests = golden if golden.is_dir() else None
    broken = [
        *text_problems(library, files, tests, FACTS),
        *shipped_problems(library),
        *message_problems(library, root),
    ]
    if root == sql_root():
        broken += private_problems(library)  # a partial library lacks some callers
    problems = [*map(str, broken), *frozen_problems(library, root)]
    if root == sql_root():
        problems += [*stored_problems(root), *literal_problems()]
    # A file that breaks a rule of form often breaks the engine's rules too: one message is enough.
    if not problems:
        problems += map(str, engine_problems(library, files))
    return [_relative(problem, root) for problem in problems]


def check_library(root: Path | None = None, golden: Path | None = None) -> Library:
    """Return a library if it follows all rules.

    Raises:
        LibraryError: The library breaks rules; the message lists all problems.
    """
    problems = find_problems(root, golden)
    if problems:
        raise LibraryError("\n".join(problems))
    return parse_library(root or sql_root())


def _relative(problem: str, root: Path) -> str:
    return problem.replace(f"{root.parent}/", "")
