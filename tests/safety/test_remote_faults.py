"""Each request of each writer to an object storage fails once, or is the last that reaches it.

After each of them a reader sees the store of before or of after, and the next run mends it.
"""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec
import pytest

import hta_sql
from hta_sql.errors import HtaSqlError
from hta_sql.store import catalog, remote_lock
from hta_sql.store.edits import remove_runs, rename_run, tag_runs
from hta_sql.store.materialize import keep_answers
from tests.safety.damages import QUESTIONS, Answers, answers, trace
from tests.safety.test_object_storage import s3, s3_server

__all__ = ["s3", "s3_server"]

# What is open where a request fails is closed by nobody.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

MEMORY_CALLS = ("pipe_file", "cat_file", "put_file", "cp_file", "find", "rm", "_open")


@dataclass
class Requests:
    """What reached the storage.

    Attributes:
        at: Number of the request that does not, from 0; None: all do.
        for_good: None that follows does, either.
    """

    at: int | None = None
    for_good: bool = False
    seen: list[str] = field(default_factory=list)

    def before(self, request: str) -> None:
        """Count a request; the one fails."""
        self.seen.append(request)
        now = len(self.seen) - 1
        if self.at is not None and (now == self.at or (self.for_good and now > self.at)):
            raise OSError(errno.ETIMEDOUT, f"the storage does not answer: {request}")


@contextmanager
def requests(url: str, at: int | None = None, *, for_good: bool = False) -> Iterator[Requests]:
    """Count the requests to a storage, and let one of them, or all from there on, fail."""
    layer = Requests(at, for_good)
    patch = pytest.MonkeyPatch()
    kind = type(fsspec.url_to_fs(url)[0])
    if url.startswith("s3://"):
        call = kind._call_s3

        async def counted_call(self: Any, method: str, *given: Any, **named: Any) -> Any:
            layer.before(method)
            return await call(self, method, *given, **named)

        patch.setattr(kind, "_call_s3", counted_call)
    for name in () if url.startswith("s3://") else MEMORY_CALLS:
        patch.setattr(kind, name, _counted(layer, name, getattr(kind, name)))
    try:
        yield layer
    finally:
        patch.undo()


def _counted(layer: Requests, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        layer.before(name)
        return real(*given, **named)

    return call


@dataclass
class Made:
    """A store at a URL, traces here, and what to put back."""

    store: str
    traces: Path
    content: dict[str, bytes]

    def put_back(self) -> None:
        """Make the store what it was."""
        fs, top = fsspec.url_to_fs(self.store)
        fs.invalidate_cache()
        if found := fs.find(top):
            fs.rm(found)
        for name, content in self.content.items():
            fs.pipe_file(name, content)


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.slow)])
def made(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Made]:
    """Two runs, kept answers, a shard that waits for its publish."""
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setattr(catalog, "cache_folder", lambda _: cache)
    # A lock that nobody renews is taken over after a blink.
    for name, seconds in {"STALE_S": 0.05, "SETTLE_S": 0.01, "POLL_S": 0.01}.items():
        monkeypatch.setattr(remote_lock, name, seconds)
    bucket = "memory://faults" if request.param == "memory" else request.getfixturevalue("s3")
    for number, run in enumerate(("first", "second", "third")):
        (tmp_path / run).mkdir()
        for rank in range(2):
            text = json.dumps(trace(rank, 100.0 + 10 * number + rank))
            (tmp_path / run / f"rank{rank}.json").write_text(text)
    store = f"{bucket}/job.store"
    for run in ("first", "second"):
        hta_sql.ingest(tmp_path / run, store, jobs=1).close()
    hta_sql.ingest_shard(tmp_path / "third", store, shard=(1, 1), jobs=1)
    fs, top = fsspec.url_to_fs(store)
    fs.invalidate_cache()
    yield Made(store, tmp_path, {name: fs.cat_file(name) for name in fs.find(top)})
    fs.rm(top, recursive=True)


def _gone(change: Callable[[], object]) -> None:
    with suppress(hta_sql.RankError):  # it is done when it is run again
        change()


def _publish(made: Made) -> None:
    with suppress(hta_sql.StoreError):
        hta_sql.publish(made.store).close()


WRITERS: dict[str, Callable[[Made], object]] = {
    "ingest": lambda made: hta_sql.ingest(
        made.traces / "second", made.store, run="other", jobs=1
    ).close(),
    "ingest again": lambda made: hta_sql.ingest(
        made.traces / "second", made.store, run="first", jobs=1
    ).close(),
    "shard": lambda made: hta_sql.ingest_shard(
        made.traces / "second", made.store, run="other", shard=(1, 1), jobs=1
    ),
    "publish": _publish,
    "materialize": lambda made: keep_answers(made.store, QUESTIONS),
    "tag": lambda made: tag_runs(made.store, "first", {"commit": "abc"}),
    "rename": lambda made: _gone(lambda: rename_run(made.store, "second", "renamed")),
    "remove": lambda made: _gone(lambda: remove_runs(made.store, "second")),
}


def survived(
    made: Made, writer: str, at: int, for_good: bool, truth: tuple[Answers, Answers]
) -> bool:
    """Let a request fail, ask, let the writer write again; returns whether the new store was there."""
    before, after = truth
    made.put_back()
    what = f"{writer} at {at}, {'for good' if for_good else 'once'}"
    with suppress(OSError, HtaSqlError), requests(made.store, at, for_good=for_good) as layer:
        WRITERS[writer](made)
    what = f"{what}: {layer.seen[at:][:1]}"
    seen = answers(made.store)
    assert seen in (before, after), what
    WRITERS[writer](made)
    assert answers(made.store) == after, what
    return seen == after


def truth_of(made: Made, writer: str) -> tuple[int, tuple[Answers, Answers]]:
    """Let a writer write without a fault: how many requests, answers before and after."""
    made.put_back()
    before = answers(made.store)
    with requests(made.store) as layer:
        WRITERS[writer](made)
    return len(layer.seen), (before, answers(made.store))


def test_a_request_of_a_tag(made: Made) -> None:
    """The last that writes; and one before it, for good."""
    count, truth = truth_of(made, "tag")
    assert count > 5
    survived(made, "tag", count // 2, False, truth)
    survived(made, "tag", count // 3, True, truth)


@pytest.mark.slow
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("writer", WRITERS)
def test_each_request_in_order(
    writer: str, for_good: bool, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of them; how many is printed."""
    count, truth = truth_of(made, writer)
    new = sum(survived(made, writer, at, for_good, truth) for at in range(count))
    with capsys.disabled():
        how = "for good" if for_good else "once"
        sys.stdout.write(
            f"\n{writer}, {how}: {count} requests; after {new} the new store was there\n"
        )
