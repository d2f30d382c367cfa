"""A store at a URL survives a failure, lost response or crash at each request of each writer.

After each fault a reader sees the old or the new store, and the next run repairs it.
``python -m tests.safety.request_rounds FOLDER --list`` rewrites the list of requests.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec
import pytest

import hta_sql
from hta_sql.store.disk import remote_lock
from hta_sql.store.disk.folder import RemoteFolder, store_folder
from hta_sql.store.disk.locks import LOCK, store_lock
from hta_sql.store.maintenance.verify import verify_store
from tests.safety.damages import answers
from tests.safety.request_faults import requests
from tests.safety.request_rounds import (
    HOW,
    REQUESTS,
    WRITERS,
    Made,
    ask_survived,
    hasty,
    listed,
    make,
    round_of,
    survived,
    truth_of,
)
from tests.safety.test_object_storage import s3, s3_server

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

__all__ = ["s3", "s3_server"]

# Objects that are open when a request fails are never closed.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

QUICK = ("ingest", "remove")
"""Writers that every test run checks with the in-memory storage."""


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Return a store in in-memory storage."""
    folder = tmp_path_factory.mktemp("memory")
    with hasty(folder / "cache") as cache:
        yield make("memory://faults", folder, cache)
    fsspec.filesystem("memory").rm("/faults", recursive=True)


@pytest.fixture
def at_s3(tmp_path: Path, s3: str) -> Iterator[Made]:
    """Return a store on an S3 server in this process."""
    with hasty(tmp_path / "cache") as cache:
        yield make(s3, tmp_path, cache)
    fsspec.filesystem("s3").rm(f"{s3}/job.store", recursive=True)


def lines_of(kind: str, writer: str) -> list[str]:
    """Return the requests of a writer in the committed list."""
    lines = REQUESTS.read_text("utf-8").splitlines()
    return [line for line in lines if line.startswith(f"{kind} {writer}: ")]


@pytest.mark.parametrize(
    "writer",
    [
        one if one in QUICK else pytest.param(one, marks=pytest.mark.slow(reason="faults"))
        for one in WRITERS
    ],
)
def test_every_request_has_a_case(writer: str, memory: Made) -> None:
    """The committed list has every request of each writer to in-memory storage."""
    assert listed("memory", memory, writer) == lines_of("memory", writer)


@pytest.mark.slow(reason="faults")
def test_every_request_to_s3_has_a_case(at_s3: Made) -> None:
    """The committed list has every request of each writer to S3."""
    for writer in WRITERS:
        assert listed("s3", at_s3, writer) == lines_of("s3", writer)


def test_some_requests(memory: Made) -> None:
    """A store survives a failed request, a lost response and a crash."""
    truth = truth_of(memory, "tag")
    count = len(truth.operations)
    survived(memory, "tag", count // 2, "fail", truth)
    survived(memory, "tag", truth.operations.index("put_file catalog.duckdb"), "lost", truth)
    survived(memory, "tag", count // 3, "stop", truth)


@pytest.mark.slow(reason="faults")
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("kind", ["memory", "s3"])
def test_each_request_in_order(
    kind: str, writer: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """A store survives each kind of fault in every request of a writer."""
    made = request.getfixturevalue("memory" if kind == "memory" else "at_s3")
    for how in HOW[kind]:
        found = round_of(made, writer, how)
        with capsys.disabled():
            sys.stdout.write(f"\n{kind} {found}\n")
        assert found.failed == []


def failing(real: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Wrap a method so that it fails for paths that contain a name."""

    def ask(fs: Any, path: str, *given: Any, **named: Any) -> Any:
        if name in path:
            raise OSError(errno.ETIMEDOUT, "the storage backend is not responding")
        return real(fs, path, *given, **named)

    return ask


def test_a_storage_that_does_not_answer_is_no_damage(
    memory: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verify does not treat temporarily unreadable files as damaged."""
    memory.put_back()
    whole = answers(memory.store)
    fs = type(fsspec.filesystem("memory"))
    with monkeypatch.context() as patch:
        patch.setattr(fs, "_open", failing(fs._open, "gpu_ops/run=first"))
        with pytest.raises(hta_sql.StoreError, match="currently cannot be read"):
            verify_store(memory.store)
    assert verify_store(memory.store).faults == []
    assert answers(memory.store) == whole


@pytest.mark.parametrize("is_error", [False, True], ids=["repeated", "failed"])
def test_a_lock_whose_answer_is_lost(
    is_error: bool, memory: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock is acquired even if the response to its request is lost, with or without a retry."""
    memory.put_back()
    folder = store_folder(memory.store)
    assert isinstance(folder, RemoteFolder)
    monkeypatch.setattr(remote_lock, "STALE_S", 60.0)
    fs = type(fsspec.filesystem("memory"))
    real = fs.pipe_file

    def lost(self: Any, path: str, content: bytes, **named: Any) -> None:
        real(self, path, content, **named)
        if is_error:
            raise OSError(errno.ETIMEDOUT, "the storage backend is not responding")
        real(self, path, content, **named)

    monkeypatch.setattr(fs, "pipe_file", lost)
    with store_lock(folder, 0.0):
        pass
    assert LOCK not in folder.files("")


def test_a_lock_whose_request_fails_once(memory: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed lock request is repeated, but never overwrites the lock of another process."""
    memory.put_back()
    folder = store_folder(memory.store)
    assert isinstance(folder, RemoteFolder)
    fs = type(fsspec.filesystem("memory"))
    pipe_file, exists, failed = fs.pipe_file, fs.exists, iter([True])

    def once(self: Any, path: str, content: bytes, **named: Any) -> None:
        if next(failed, False):
            raise OSError(errno.ETIMEDOUT, "the storage backend is not responding")
        pipe_file(self, path, content, **named)

    def then(self: Any, path: str, **named: Any) -> bool:
        found = bool(exists(self, path, **named))
        pipe_file(self, path, b"another one's")
        return found

    monkeypatch.setattr(fs, "pipe_file", once)
    monkeypatch.setattr(fs, "exists", then)
    assert not folder.create("x", b"ours")
    assert folder.read("x") == b"another one's"


def test_what_a_client_raises_of_its_own(
    memory: Made, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """An exception of the client's own class is reported as a one-line error."""
    memory.put_back()

    class NoNetworkError(Exception):
        """Exception class of a client, like those of botocore."""

    def cat_file(*_given: Any, **_named: Any) -> bytes:
        raise NoNetworkError("Could not connect to the endpoint.")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "cat_file", cat_file)
    cli("runs", memory.store).fails(1, "is not responding: Could not connect to the endpoint.")


@pytest.mark.parametrize("how", ["fail", "stop"])
def test_a_reader_whose_request_fails(how: str, memory: Made) -> None:
    """A reader whose request fails gets correct rows or an error, never incomplete rows."""
    memory.put_back()
    whole = answers(memory.store)
    with requests(memory.store) as layer:
        memory.forget()
        assert answers(memory.store) == whole
    for at in range(0, len(layer.seen), 1 + len(layer.seen) // 4):
        ask_survived(memory, at, how, whole)
