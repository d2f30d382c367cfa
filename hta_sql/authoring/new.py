"""Create a first user analysis: its .sql file, golden test and trace."""

from __future__ import annotations

import re
from pathlib import Path

from hta_sql.errors import LibraryError, ParameterError
from hta_sql.library.objects import load_library
from hta_sql.library.sql_files import sql_root
from hta_sql.traces.writing import replacing

PLACEHOLDER = "new_analysis"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = ("lib", "tests")


def write_new_analysis(name: str, topic: str, folder: Path) -> list[Path]:
    """Write valid, working files as the starting point of a user analysis.

    Args:
        name: Name of the analysis, without version.
        topic: Folder of the analysis, and the heading under which it is listed.
        folder: Folder of user analyses; created if missing.

    Returns:
        Paths of the written files.

    Raises:
        ParameterError: The name or topic is not valid.
        LibraryError: A file already exists, or the library ships an analysis of this name.
    """
    if not _NAME.fullmatch(name) or not _NAME.fullmatch(topic) or topic in _TAKEN:
        raise ParameterError(
            f"{topic}/{name}: names may contain lowercase letters, digits and _; a topic must not be "
            f"named {' or '.join(_TAKEN)}."
        )
    library = load_library()
    for about in (*library.tables, *library.analyses):
        if about.base_name == re.sub(r"_v\d+$", "", name):
            raise LibraryError(
                f"{name} is the name of a built-in analysis: {about.path}. Choose another name."
            )
    source = sql_root() / "new"
    texts = {
        folder / _renamed(path.relative_to(source), name, topic): path.read_text(encoding="utf-8")
        for path in sorted(source.rglob("*.*"))
    }
    for path in texts:
        if path.exists():
            raise LibraryError(
                f"{path}:1: the file already exists; choose another name, or create a _v2."
            )
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_text(text.replace(PLACEHOLDER, name), encoding="utf-8")
    return list(texts)


def _renamed(path: Path, name: str, topic: str) -> Path:
    parts = [topic if part == "topic" else part for part in path.parts]
    return Path(*parts[:-1], parts[-1].replace(PLACEHOLDER, name))
