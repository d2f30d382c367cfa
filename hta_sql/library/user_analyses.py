"""User analyses: folders of .sql files in addition to the shipped library.

::

    <folder>/<topic>/<name>_v<N>.sql    an analysis, in the form of the shipped ones
    <folder>/lib/<name>.sql             a macro shared by several analyses
    <folder>/tests/                     golden tests of the analyses, for ``hta-sql check`` only

The folders are given in the call (``analyses=``, ``--analyses``) or in the environment variable
:data:`ENVIRONMENT`. Installed packages add theirs through an entry point of :data:`GROUP`. Nothing
is cached between calls, so changed files take effect in the next call.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from hta_sql.errors import LibraryError
from hta_sql.library.chart_header import chart_problems
from hta_sql.library.objects import Library, SqlObject, load_library, parse_file
from hta_sql.library.parameters import TYPES

ENVIRONMENT = "HTA_SQL_ANALYSES"
"""Environment variable with folders, separated as in ``PATH``."""

GROUP = "hta_sql.analyses"
"""Group of entry points: a package, a path, or a function that returns paths."""

LIB, TESTS = "lib", "tests"

Analyses = str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None
"""One or several folders; None: the folders in the environment variable."""

_ANALYSIS = re.compile(r"[a-z][a-z0-9_]*_v[1-9]\d*")
_SHARED = re.compile(r"[a-z][a-z0-9_]*")
_VIEWS = ("analyses",)
"""Views that a catalog has in addition to the library."""


def library_with(analyses: Analyses = None) -> Library:
    """Return the shipped library, extended by the requested user analyses.

    Raises:
        LibraryError: A folder is missing, a file is malformed, or two have the same name.
    """
    return library_of(user_folders(analyses))


def user_folders(analyses: Analyses = None) -> tuple[Path, ...]:
    """List the folders to read: given or from the environment, plus those of installed packages.

    Raises:
        LibraryError: A folder is missing, or an entry point fails.
    """
    if analyses is None:
        named = os.environ.get(ENVIRONMENT, "").split(os.pathsep)
        folders = [(ENVIRONMENT, Path(name)) for name in named if name]
    else:
        is_one = isinstance(analyses, (str, os.PathLike))
        listed = [analyses] if is_one else analyses
        folders = [("analyses", Path(name)) for name in listed]  # type: ignore[arg-type, union-attr]
    found: dict[Path, None] = {}
    for where, folder in (*folders, *_of_packages()):
        if not folder.is_dir():
            raise LibraryError(f"{where} names {str(folder)!r}, which is not a folder.")
        found[folder.resolve()] = None
    return tuple(found)


def library_of(folders: Iterable[Path]) -> Library:
    """Return the shipped library, extended by the contents of folders.

    Raises:
        LibraryError: A file is malformed, or two have the same name; the message names both.
    """
    added = [about for folder in folders for about in read_folder(folder)]
    return with_user_analyses(load_library(), added) if added else load_library()


def read_folder(folder: Path) -> list[SqlObject]:
    """Parse the contents of a folder: lib macros and analyses.

    Raises:
        LibraryError: The folder has no analysis, or a malformed file.
    """
    misplaced = [*folder.glob("*.sql"), *folder.glob("*/*/*.sql")]
    for path in sorted(misplaced):
        place = path.relative_to(folder).parts[0]
        if place != TESTS and not place.startswith("."):
            raise LibraryError(
                f"{path}:1: move the file to TOPIC/{path.name}, where TOPIC is one word."
            )
    paths = sorted(p for p in folder.glob("*/*.sql") if not p.parent.name.startswith("."))
    found = [parse_file(path) for path in paths if path.parent.name != TESTS]
    if not any(not about.is_macro for about in found):
        raise LibraryError(
            f"{folder} contains no analysis TOPIC/NAME_v1.sql. To write one: "
            f"hta-sql new analysis NAME --into {folder}"
        )
    for about in found:
        for problem in _unusable(about):
            raise LibraryError(f"{about.path}:1: {problem}.")
    return found


def with_user_analyses(shipped: Library, added: Iterable[SqlObject]) -> Library:
    """Return the shipped library, extended by user objects.

    Raises:
        LibraryError: A name is taken; the message names both files.
    """
    found = list(added)
    taken = {f"lib.{macro.name}": str(macro.path) for macro in shipped.macros}
    for about in (*shipped.tables, *shipped.analyses):
        taken |= dict.fromkeys(_names(about), str(about.path))
    taken |= dict.fromkeys(_VIEWS, "the catalog")
    for about in found:
        for name in _names(about):
            other = taken.setdefault(name, str(about.path))
            if other != str(about.path) and not _same_analysis(Path(other), about):
                raise LibraryError(
                    f"{about.path}:1: {name} is also defined by {other}; rename one of them."
                )
    return Library(
        tables=shipped.tables,
        macros=(*shipped.macros, *(a for a in found if a.is_macro)),
        analyses=(*shipped.analyses, *(a for a in found if not a.is_macro)),
        derived=shipped.derived,
        shipped=shipped,
    )


def _names(about: SqlObject) -> set[str]:
    """Return the names that a table, an analysis or a user's macro takes in the catalog."""
    return {f"lib.{about.name}"} if about.is_macro else {about.name, about.base_name}


def _same_analysis(other: Path, about: SqlObject) -> bool:
    """Return whether two files in one folder may be versions of one analysis."""
    return other.parent == about.path.parent and other != about.path and not about.is_macro


def _unusable(about: SqlObject) -> Iterator[str]:
    """Yield the problems that make a file's object unusable; ``hta-sql check`` has more rules.

    Raises:
        LibraryError: A parameter line does not have the required form.
    """
    declared = about.parameters
    if about.is_macro:
        if not _SHARED.fullmatch(about.name) or f"MACRO lib.{about.name}(" not in about.text:
            yield "a file in lib must create a macro lib.name, in lowercase"
    elif "\n) AS TABLE\n" not in about.text or f"MACRO {about.name}(" not in about.text:
        yield "an analysis must be defined by CREATE OR REPLACE MACRO name_v1(…) AS TABLE"
    elif not _ANALYSIS.fullmatch(about.name):
        yield f"rename the analysis to {about.name.lower()}_v1: lowercase, with a version"
    if about.path.stem != about.name:
        yield f"the file creates {about.name}; rename the file to {about.name}.sql"
    yield from chart_problems(about)
    for parameter in declared if not about.is_macro else ():
        if parameter.default is None or (parameter.type or "").removesuffix("[]") not in TYPES:
            known = ", ".join(TYPES)
            yield f"parameter {parameter.name} needs a default, and one of the types {known}, or a list of one of them"


def _of_packages() -> list[tuple[str, Path]]:
    """List the folders of installed packages, each with its entry point."""
    if not _is_some_package(tuple(sys.path)):
        return []
    from importlib.metadata import entry_points  # noqa: PLC0415 - needed only if a package has one

    found: list[tuple[str, Path]] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        where = f"The entry point {point.name} = {point.value} of {GROUP}"
        try:
            folders = _folders_of(point.load())
        except Exception as error:  # another package may raise anything
            raise LibraryError(f"{where} failed: {type(error).__name__}: {error}") from error
        found += [(where, folder) for folder in folders]
    return found


def _folders_of(named: Any) -> list[Path]:
    if isinstance(named, ModuleType):
        return [Path(next(iter(named.__path__)))]
    if isinstance(named, (str, os.PathLike)):
        return [Path(named)]
    if callable(named):
        return _folders_of(named())
    return [Path(name) for name in named]


@cache
def _is_some_package(places: tuple[str, ...]) -> bool:
    """Return whether an installed package uses :data:`GROUP`; importlib takes 8 ms instead of 2."""
    heading = f"[{GROUP}]".encode()
    for place in dict.fromkeys(places):
        try:
            with os.scandir(place or ".") as entries:
                names = [e.path for e in entries if e.name.endswith((".dist-info", ".egg-info"))]
        except OSError:
            continue
        for name in names:
            try:
                with open(f"{name}/entry_points.txt", "rb") as file:  # noqa: PTH123 - pathlib is slower
                    if heading in file.read():
                        return True
            except OSError:
                continue
    return False
