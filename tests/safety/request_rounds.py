"""Inject a fault into each request of each writer of a remote store, and check the store.

Run as a program: ``python -m tests.safety.request_rounds FOLDER [WRITER ...]`` uses an S3 server in
this process or fsspec's memory file system. It prints how many requests each writer sends, how many
of them were tried with each kind of fault, and which cases failed. ``--list`` rewrites the list of
requests.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import fsspec
import pytest

import hta_sql
from hta_sql.errors import HtaSqlError
from hta_sql.store.catalog import build
from hta_sql.store.catalog.build import build_catalog
from hta_sql.store.catalog.materialize import materialize_answers
from hta_sql.store.catalog.run_tags import tag_runs
from hta_sql.store.disk import orphaned_files, remote_lock
from hta_sql.store.disk.manifest import read_manifest
from hta_sql.store.maintenance.edits import remove_runs, rename_run
from tests.safety.damages import QUESTIONS, Answers, answers, trace
from tests.safety.fault_rounds import DAMAGED, Round, Truth, chosen, conclude, is_partial, told
from tests.safety.request_faults import WRITING, requests

REQUESTS = Path(__file__).with_name("remote_requests.txt")
HOW = {"memory": ("fail", "lost", "stop"), "s3": ("fail", "lost", "again", "stop")}
ONLY = {"lost": WRITING, "again": WRITING}
"""Kind of fault ─▶ prefixes of the requests that it applies to, which all modify objects."""


@dataclass
class Made:
    """A store at a URL, its traces on disk, and a copy of its objects to restore."""

    store: str
    traces: Path
    content: dict[str, bytes]
    cache: Path
    """Folder of cached catalogs."""

    def forget(self) -> None:
        """Empty the cache."""
        shutil.rmtree(self.cache)
        self.cache.mkdir()

    def put_back(self, writer: str = "") -> None:
        """Restore the store, and damage it if the next writer restores a run."""
        fs, top = fsspec.url_to_fs(self.store)
        fs.invalidate_cache()
        there = fs.find(top, detail=True)
        if gone := [name for name in there if name not in self.content]:
            fs.rm(gone)
        for name, content in self.content.items():
            if name not in there or _is_other(fs, there[name], content):
                fs.pipe_file(name, content)
        if writer == "restore":
            (entry,) = (
                e for e in read_manifest(self.store).entries if (e.run, e.rank) == (DAMAGED, 0)
            )
            path = f"{top}/{entry.files['gpu_ops']['path']}"
            fs.pipe_file(path, fs.cat_file(path)[:100])


def _is_other(fs: Any, about: dict[str, Any], content: bytes) -> bool:
    """Return whether an object differs from the expected content, by its ETag if possible."""
    if "ETag" in about:
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return str(about["ETag"]).strip('"') != digest
    return bool(fs.cat_file(about["name"]) != content)


def make(bucket: str, folder: Path, cache: Path) -> Made:
    """Create a store with two runs, materialized answers and an unpublished shard."""
    for number, run in enumerate(("first", "second", "third")):
        (folder / run).mkdir()
        for rank in range(2):
            text = json.dumps(trace(rank, 100.0 + 10 * number + rank))
            (folder / run / f"rank{rank}.json").write_text(text)
    store = f"{bucket}/job.store"
    for run in ("first", "second"):
        hta_sql.ingest(folder / run, store, jobs=1).close()
    materialize_answers(store, QUESTIONS[:1])
    hta_sql.ingest_shard(folder / "third", store, shard=(1, 1), jobs=1)
    fs, top = fsspec.url_to_fs(store)
    fs.invalidate_cache()
    return Made(store, folder, {name: fs.cat_file(name) for name in fs.find(top)}, cache)


@contextmanager
def hasty(cache: Path) -> Iterator[Path]:
    """Cache catalogs in a separate folder, and shorten the wait times of the store lock."""
    cache.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "cache_folder", lambda _: cache)
        for name, seconds in {"STALE_S": 0.05, "SETTLE_S": 0.01, "POLL_S": 0.01}.items():
            patch.setattr(remote_lock, name, seconds)
        patch.setattr(orphaned_files, "SAVE_S", 0)
        yield cache


def _ingest(made: Made, run: str, **options: Any) -> None:
    hta_sql.ingest(made.traces / "second", made.store, run=run, jobs=1, **options).close()


def _gone(change: Callable[[], object]) -> None:
    with suppress(hta_sql.RankError):  # an earlier attempt may have made the change
        change()


def _publish(made: Made) -> None:
    with suppress(hta_sql.StoreError):
        hta_sql.publish(made.store).close()


def _ask(made: Made) -> None:
    made.forget()
    answers(made.store)


READER = "ask"

WRITERS: dict[str, Callable[[Made], object]] = {
    "ingest": lambda made: _ingest(made, "other"),
    "ingest again": lambda made: _ingest(made, "first"),
    "shard": lambda made: hta_sql.ingest_shard(
        made.traces / "second", made.store, run="other", shard=(1, 1), jobs=1
    ),
    "publish": _publish,
    "catalog": lambda made: build_catalog(made.store),
    "materialize": lambda made: materialize_answers(made.store, QUESTIONS),
    "tag": lambda made: tag_runs(made.store, "first", {"commit": "abc"}),
    "rename": lambda made: _gone(lambda: rename_run(made.store, "second", "renamed")),
    "remove": lambda made: _gone(lambda: remove_runs(made.store, "second")),
    "restore": lambda made: hta_sql.ingest(
        made.traces / DAMAGED, made.store, run=DAMAGED, jobs=1, force=True
    ).close(),
    READER: _ask,
}


def truth_of(made: Made, writer: str) -> Truth:
    """Run a writer without a fault; return its requests and the answers before and after it."""
    made.put_back(writer)
    before = answers(made.store)
    with requests(made.store) as layer:
        WRITERS[writer](made)
    return Truth(layer.seen, before, answers(made.store))


def survived(made: Made, writer: str, at: int, how: str, truth: Truth) -> str:
    """Inject a fault into a request, query the store, and run the writer again.

    Returns:
        The state that the query saw: ``before`` or ``after`` the writer.

    Raises:
        AssertionError: A reader saw neither the old nor the new store, or the next run
            does not repair it.
    """
    made.put_back(writer)
    what = f"{how} of {writer} at {at}: {truth.operations[at]}"
    error: Exception | None = None
    with requests(made.store, at, how):
        try:
            WRITERS[writer](made)
        except (OSError, HtaSqlError) as caught:
            error = caught
    seen = answers(made.store)
    assert seen in (truth.before, truth.after) or is_partial(seen, writer, how, truth), what
    if how == "again":
        assert error is None, f"{what}: {error!r}"
        assert seen == truth.after, what
    WRITERS[writer](made)
    assert answers(made.store) == truth.after, what
    return "after" if seen == truth.after else "before"


def ask_survived(made: Made, at: int, how: str, truth: Answers) -> str:
    """Inject a fault into one request of a reader, and query the store again.

    Returns:
        ``after`` if the reader got rows, otherwise ``before``.

    Raises:
        AssertionError: The reader or a later query got wrong rows.
    """
    made.forget()
    seen: Answers | None = None
    with suppress(OSError, HtaSqlError), requests(made.store, at, how):
        seen = answers(made.store)
    assert seen in (None, truth), f"{how} of a reader at {at}"
    assert answers(made.store) == truth, f"{how} of a reader at {at}"
    return "before" if seen is None else "after"


def round_of(made: Made, writer: str, how: str, most: int | None = None) -> Round:
    """Inject one kind of fault into the selected requests of a writer, one at a time."""
    truth = truth_of(made, writer)
    seen, failed = [], []
    wanted = chosen(truth.operations, most, ONLY.get(how, ("",)))
    for at in wanted:
        try:
            if writer == READER:
                seen.append(ask_survived(made, at, how, truth.before))
            else:
                seen.append(survived(made, writer, at, how, truth))
        except Exception as error:  # noqa: BLE001 - reported with all others
            failed.append(f"{how} of {writer} at {at}, {truth.operations[at]}: {error!r:.400}")
    return Round(writer, how, len(truth.operations), len(wanted), seen.count("after"), failed)


@contextmanager
def s3_bucket() -> Iterator[str]:
    """Run an S3 server in this process, set the environment, and yield the URL of a bucket."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - an extra

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    fsspec.filesystem("s3").mkdir("faults")
    yield "s3://faults"
    server.stop()


def listed(kind: str, made: Made, writer: str) -> list[str]:
    """Return the distinct requests of a writer."""
    return sorted({f"{kind} {writer}: {done}" for done in truth_of(made, writer).operations})


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("writers", nargs=-1, type=click.Choice(list(WRITERS)))
@click.option("--how", multiple=True, help="fail, lost, again, stop; default: all.")
@click.option("--most", type=int, help="Requests of one name that are tried; default: all.")
@click.option("--memory", is_flag=True, help="A storage in memory, not S3.")
@click.option("--list", "is_list", is_flag=True, help="Write the list of requests anew.")
def main(
    folder: Path,
    writers: tuple[str, ...],
    how: tuple[str, ...],
    most: int | None,
    *,
    memory: bool,
    is_list: bool,
) -> None:
    """Inject faults into writers of a store at a URL; traces and catalogs are in a new FOLDER."""
    logging.disable(logging.ERROR)
    folder.mkdir()
    writers = writers or tuple(WRITERS)
    with hasty(folder / "cache") as cache, s3_bucket() as bucket:
        if is_list:
            lines: list[str] = []
            for kind, url in {"memory": "memory://faults", "s3": bucket}.items():
                place = folder / kind
                place.mkdir()
                made = make(url, place, cache)
                lines += [line for writer in WRITERS for line in listed(kind, made, writer)]
            REQUESTS.write_text("".join(f"{line}\n" for line in sorted(lines)), "utf-8")
            return
        kind = "memory" if memory else "s3"
        made = make("memory://faults" if memory else bucket, folder, cache)
        rounds = [
            told(round_of(made, writer, way, most))
            for writer in writers
            for way in how or HOW[kind]
        ]
    conclude(rounds, "requests")


if __name__ == "__main__":
    main()
