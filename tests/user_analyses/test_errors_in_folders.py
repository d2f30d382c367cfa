"""Errors in a folder of user analyses name the file, and the line if there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

import hta_sql
from hta_sql.errors import LibraryError
from hta_sql.library.user_analyses import library_with
from tests.user_analyses.folders import ANALYSIS, own_macro, write_folder


def refused(*folders: Path) -> str:
    """Return the error message for folders that are refused."""
    with pytest.raises(LibraryError) as caught:
        library_with(folders)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("temporal_breakdown", "/analyses/timeline/temporal_breakdown_v1.sql"),
        ("gpu_ops", "/tables/gpu_ops.sql"),
        ("analyses", "the catalog"),
    ],
)
def test_a_name_that_is_shipped(tmp_path: Path, name: str, other: str) -> None:
    """The error for a name that is already in use names both files."""
    said = refused(write_folder(tmp_path, name=name))
    assert f"{tmp_path}/kernels/{name}_v1.sql:1: {name}" in said
    assert f"{other}; rename one of them." in said


def test_a_newer_version_of_what_is_shipped(tmp_path: Path) -> None:
    """A newer version of a shipped analysis is refused: it would change the name for everyone."""
    write_folder(tmp_path)
    path = tmp_path / "kernels" / "stream_load_v1.sql"
    text = path.read_text(encoding="utf-8").replace("stream_load_v1", "temporal_breakdown_v9")
    path.with_name("temporal_breakdown_v9.sql").write_text(text, encoding="utf-8")
    assert "temporal_breakdown_v9.sql:1: temporal_breakdown is also defined by" in refused(tmp_path)


def test_a_macro_that_is_shipped(tmp_path: Path) -> None:
    """A macro with a shipped name is refused, because the shipped analyses depend on it."""
    own_macro(write_folder(tmp_path), "merged_intervals")
    said = refused(tmp_path)
    assert f"{tmp_path}/lib/merged_intervals.sql:1: lib.merged_intervals is also" in said
    assert "/lib/intervals/merged_intervals.sql; rename" in said


def test_two_folders_with_one_name(tmp_path: Path) -> None:
    """The same analysis name in two folders is ambiguous, and refused."""
    first, second = write_folder(tmp_path / "a"), write_folder(tmp_path / "b")
    own_macro(second, "total")
    said = refused(first, second)
    assert f"{second}/kernels/stream_load_v1.sql:1: stream_load" in said
    assert f"is also defined by {first}/kernels/stream_load_v1.sql; rename" in said


def test_versions_side_by_side(tmp_path: Path) -> None:
    """Versions in one folder belong to one analysis, as in the shipped library."""
    write_folder(tmp_path)
    path = tmp_path / "kernels" / "stream_load_v2.sql"
    path.write_text(ANALYSIS.replace("stream_load_v1", "stream_load_v2"), encoding="utf-8")
    assert [a.version for a in library_with(tmp_path).versions("stream_load")] == [1, 2]
    assert library_with(tmp_path).find("stream_load").version == 2


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """The errors for a missing folder and for an empty one say what to do."""
    assert "names '/no/such/folder', which is not a folder" in refused(Path("/no/such/folder"))
    assert f"hta-sql new analysis NAME --into {tmp_path}" in refused(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "MACRO stream_load_v1(",
            "MACRO other_v1(",
            ":1: the file creates other_v1; rename the file to other",
        ),
        ("CREATE OR REPLACE MACRO", "CREATE MACRO", ":1: no 'CREATE OR REPLACE MACRO name('"),
        (
            ") AS TABLE\n",
            ") AS\n",
            ":1: an analysis must be defined by CREATE OR REPLACE MACRO name_v1(",
        ),
        ("min_kernels BIGINT := 1", "min_kernels DATE := NULL", "parameter min_kernels needs"),
        ("min_kernels BIGINT := 1", "min_kernels => 1", ":21: cannot read the parameter line"),
    ],
)
def test_a_file_without_the_form(tmp_path: Path, old: str, new: str, said: str) -> None:
    """A file that lacks the required form is reported when the folder is read."""
    assert old in ANALYSIS
    write_folder(tmp_path, text=ANALYSIS.replace(old, new))
    message = refused(tmp_path)
    assert message.startswith(f"{tmp_path}/kernels/stream_load_v1.sql:")
    assert said in message


def test_a_file_in_no_topic(tmp_path: Path) -> None:
    """A file outside a topic folder is refused, because it would be silently ignored."""
    write_folder(tmp_path)
    (tmp_path / "stream_load_v2.sql").write_text(ANALYSIS, encoding="utf-8")
    assert refused(tmp_path).endswith(
        "stream_load_v2.sql:1: move the file to TOPIC/stream_load_v2.sql, where TOPIC is one word."
    )


REFUSED = {
    "a slip of the pen": ("FROM loads AS l", "FORM loads AS l", "FORM", "syntax error at or near"),
    "a table that is not there": (
        "FROM loads AS l",
        "FROM burdens AS l",
        "FROM burdens",
        "burdens",
    ),
    "a column that is not there": ("WHERE l.kernel", "WHERE l.missing", "l.missing", "missing"),
    "two statements": ("l.stream;\n", "l.stream;\nDROP VIEW runs;\n", "--", "one CREATE statement"),
}
"""Kind ─▶ old and new text, prefix of the reported line, and part of the message."""


@pytest.mark.parametrize("kind", list(REFUSED))
def test_a_file_that_the_engine_refuses(kind: str, store: Path, tmp_path: Path) -> None:
    """The error for SQL that the engine refuses names file and line, and no store is opened."""
    old, new, named, said = REFUSED[kind]
    burdens = "a variable of Python's is no table"
    assert burdens
    assert old in ANALYSIS
    text = ANALYSIS.replace(old, new)
    write_folder(tmp_path, text=text)
    with pytest.raises(LibraryError) as caught:
        hta_sql.open(store, analyses=tmp_path)
    line = text[: text.index(named)].count("\n") + 1
    assert str(caught.value).startswith(f"{tmp_path}/kernels/stream_load_v1.sql:{line}: ")
    assert said in str(caught.value)


def test_the_name_of_a_function_of_the_engine(store: Path, tmp_path: Path) -> None:
    """A macro named like an engine function is refused, because shipped analyses would call it."""
    with pytest.raises(
        LibraryError, match="unnest is already the name of a built-in DuckDB function"
    ):
        hta_sql.open(store, analyses=write_folder(tmp_path, name="unnest"))
