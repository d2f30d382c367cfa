"""Validate folders of user analyses and run their golden tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import duckdb

from hta_sql.authoring.golden import Case, cases_of, difference
from hta_sql.authoring.golden_engine import GoldenEngine
from hta_sql.errors import HtaSqlError, LibraryError
from hta_sql.library.objects import Library, SqlObject
from hta_sql.library.rules.engine import engine_problems
from hta_sql.library.rules.text import text_problems
from hta_sql.library.user_analyses import TESTS, library_of
from hta_sql.machine import temporary_folder


def folder_problems(folders: Iterable[Path]) -> list[str]:
    """Return the problems in folders of user analyses as ``path:line: message``.

    The list is empty if there are none. The engine and the golden tests run only if the text of the
    files is valid, so that each mistake gives one message.
    """
    looked_at = list(folders)
    try:
        library = library_of(looked_at)
        problems = list(_by_rules(library, looked_at))
        for folder in () if problems else looked_at:
            problems += _by_tests(library, folder)
    except LibraryError as error:
        return [str(error)]
    return problems


def counts(folders: Iterable[Path]) -> tuple[int, int]:
    """Return the number of analyses and the number of golden cases in the folders."""
    looked_at = list(folders)
    cases = [case for folder in looked_at for case in cases_of(folder / TESTS)]
    return len(library_of(looked_at).user_library.analyses), len(cases)


def _by_rules(library: Library, folders: list[Path]) -> Iterator[str]:
    files = (*library.user_library.macros_in_order, *library.user_library.analyses)
    broken = [
        problem
        for folder in folders
        for problem in text_problems(library, _inside(files, folder), folder / TESTS)
    ]
    yield from map(str, broken or engine_problems(library, files))


def _inside(files: Iterable[SqlObject], folder: Path) -> list[SqlObject]:
    return [about for about in files if about.path.parent.parent == folder]


def _by_tests(library: Library, folder: Path) -> Iterator[str]:
    """Run the golden cases of a folder, grouped by trace; yield the failures."""
    cases = sorted(cases_of(folder / TESTS), key=lambda case: case.traces)
    own = {about.name for about in library.user_library.analyses}
    strange = {case.path: case for case in cases if case.path.stem not in own}
    for path in strange:
        yield f"{path}:1: there is no analysis named {path.stem}; name the file after the analysis that it tests."
    asked = [case for case in cases if case.path not in strange]
    with (
        temporary_folder() as temporary,
        closing(GoldenEngine(Path(temporary), library, asked, folder / TESTS / "traces")) as engine,
    ):
        for case in asked:
            if problem := _of_case(engine, case):
                yield f"{case.path}:{case.line}: {problem}"


def _of_case(engine: GoldenEngine, case: Case) -> str:
    if f"{case.path.stem}(" not in case.call:
        return f"the case does not call {case.path.stem}."
    try:
        found = difference(case, *engine.ask(case))
    except LibraryError:
        raise
    except (duckdb.Error, HtaSqlError) as error:
        return str(error).partition("\n")[0]
    rows = "\n".join(
        f"    {line}" for line in found.splitlines() if line.startswith(("-", "+", " "))
    )
    return f"the rows differ (- expected, + actual):\n{rows}" if found else ""
