"""An unreadable file in a trace folder is reported, and the other files are read."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from hta_sql.errors import TraceFormatError, TraceNotFoundError
from hta_sql.ingestion.discover import discover
from hta_sql.ingestion.fingerprints import fingerprint

Make = Callable[[Path], object]


def bind_socket(path: Path) -> None:
    """Create a socket file, which remains after the socket is closed."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


SPECIAL: dict[str, tuple[Make, str]] = {
    "pipe": (os.mkfifo, "is not a regular file: it is a pipe"),
    "socket": (bind_socket, "is not a regular file: it is a pipe, a socket"),
    "dangling link": (lambda path: path.symlink_to("gone.json"), "No such file"),
    "link to itself": (lambda path: path.symlink_to(path), "Too many levels"),
    "link to a device": (lambda path: path.symlink_to("/dev/zero"), "a socket or a device"),
}


@pytest.fixture
def folder(tmp_path: Path, trace_path: Callable[[str], Path]) -> Path:
    """Create a folder with one valid trace, for rank 0."""
    place = tmp_path / "job"
    place.mkdir()
    shutil.copy(trace_path("two_ranks_0.json"), place / "rank0.json")
    return place


@pytest.mark.parametrize(("make", "said"), SPECIAL.values(), ids=SPECIAL)
def test_what_is_no_file(
    folder: Path, caplog: pytest.LogCaptureFixture, make: Make, said: str
) -> None:
    """Pipes, sockets, devices and broken links are skipped with a warning."""
    make(folder / "rank1.json")
    assert [file.rank for file in discover(str(folder))] == [0]
    (warning,) = [text for text in caplog.messages if text.startswith("Skipped")]
    assert "rank1.json" in warning
    assert said in warning


@pytest.mark.parametrize("what", ["pipe", "dangling link"])
def test_by_its_own_name_it_is_an_error(folder: Path, what: str) -> None:
    """A pipe or broken link is an error if the user passes its path."""
    make, said = SPECIAL[what]
    make(folder / "rank1.json")
    with pytest.raises((TraceFormatError, TraceNotFoundError), match=said):
        discover({0: str(folder / "rank0.json"), 1: str(folder / "rank1.json")})


def test_a_trace_that_became_a_pipe(folder: Path) -> None:
    """If a trace has become a pipe, checking it for changes fails instead of blocking."""
    os.mkfifo(folder / "rank1.json")
    with pytest.raises(TraceFormatError, match="is not a regular file: it is a pipe"):
        fingerprint(str(folder / "rank1.json"))


def test_a_file_that_may_not_be_read(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace without read permission is reported.

    The error is simulated, because root may read every file.
    """
    shutil.copy(folder / "rank0.json", folder / "rank1.json")
    refuse(monkeypatch, "fsspec.implementations.local.LocalFileSystem._open", "rank1.json")
    assert [file.rank for file in discover(str(folder))] == [0]
    assert any("rank1.json': Permission denied" in text for text in caplog.messages)
    with pytest.raises(TraceNotFoundError, match="Permission denied"):
        fingerprint(str(folder / "rank1.json"))


def test_folders_that_are_left_out(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders without read permission and links to folders are skipped with a message."""
    shutil.copytree(folder, folder / "closed")
    (folder / "linked").symlink_to(folder)
    refuse(monkeypatch, "os.scandir", "closed")
    assert len(discover(str(folder))) == 1
    assert f"Skipped folder '{folder / 'closed'}': Permission denied." in caplog.messages
    assert any("linked': it is a symbolic link" in text for text in caplog.messages)


def refuse(monkeypatch: pytest.MonkeyPatch, function: str, ending: str) -> None:
    """Make a function raise PermissionError for paths with a given ending."""
    module, _, name = function.rpartition(".")
    owner = os if module == "os" else __import__("fsspec").implementations.local.LocalFileSystem
    real = getattr(owner, name)

    def refusing(*args: object, **kwargs: object) -> object:
        path = next((arg for arg in args if isinstance(arg, str)), "")
        if path.endswith(ending):
            raise PermissionError(13, os.strerror(13), path)
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, refusing)


def test_many_foreign_files_are_one_line(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Many JSON files that are not traces are reported in a single warning."""
    for number in range(50):
        (folder / f"settings{number:02}.json").write_text('{"a": 1}')
    assert len(discover(str(folder))) == 1
    (warning,) = caplog.messages
    assert warning.startswith("Skipped 50 files that are not Kineto traces, such as")
    assert warning.count("settings") == 5


def test_unreadable_ones_are_named_first(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Files that cannot be opened are listed before files that are not traces."""
    for number in range(50):
        (folder / f"settings{number:02}.json").write_text('{"a": 1}')
    (folder / "trace.json").symlink_to("gone.json")
    discover(str(folder))
    (warning,) = caplog.messages
    assert "or cannot be opened (1 file), such as" in warning
    assert f"such as '{folder / 'trace.json'}', " in warning
