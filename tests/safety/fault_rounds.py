"""Inject a fault into each file operation of each store writer, and check the store every time.

Run as a program: ``python -m tests.safety.fault_rounds FOLDER [WRITER ...]`` prints how many
operations each writer has, how many of them were tried with each kind of fault, and which cases
failed. ``--list`` rewrites the list of operations.
"""

from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import click

import hta_sql
from hta_sql.errors import HtaSqlError
from hta_sql.store.catalog.build import build_catalog
from hta_sql.store.catalog.materialize import materialize_answers
from hta_sql.store.catalog.run_tags import tag_runs
from hta_sql.store.disk.file_checks import faults_of, files_of
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.manifest import read_manifest
from hta_sql.store.maintenance.edits import remove_runs, rename_run
from hta_sql.store.maintenance.verify import verify_store
from tests.safety.damages import QUESTIONS, Answers, answers, make_store, restore
from tests.safety.file_faults import StoppedError, faults

OPERATIONS = Path(__file__).with_name("file_operations.txt")
HOW = ("fail", "stop", "torn", "power")
"""Kinds of faults.

``fail``: the operation raises. ``stop``: neither it nor any later operation takes effect. ``torn``:
half of its data is written, and no later operation takes effect. ``power``: like ``stop``, and
data that was not flushed is lost.
"""

ONLY = {"torn": ("write ", "engine ")}
"""Kind of fault ─▶ prefixes of the operations that it applies to."""

WHOLE_LOOK = 8
"""Interval of the cases that also compare the catalog; all cases compare the files."""


DAMAGED = "first"
"""Name of the run that is damaged before it is restored."""


def _ingest(store: Path) -> None:
    hta_sql.ingest(store.parent / "second", store, run="other", jobs=1).close()


def _ingest_again(store: Path) -> None:
    hta_sql.ingest(store.parent / "second", store, run="first", jobs=1).close()


def _restore(store: Path) -> None:
    hta_sql.ingest(store.parent / DAMAGED, store, run=DAMAGED, jobs=1, force=True).close()


def _shard(store: Path) -> None:
    hta_sql.ingest_shard(store.parent / "third", store, shard=(2, 2), jobs=1)


def _publish(store: Path) -> None:
    with suppress(hta_sql.StoreError):  # nothing is left to publish in a second run
        hta_sql.publish(store).close()


def _cut_off(store: Path) -> None:
    (entry,) = (e for e in read_manifest(store).entries if (e.run, e.rank) == (DAMAGED, 0))
    path = store / entry.files["gpu_ops"]["path"]
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:100])


def _remove(store: Path) -> None:
    with suppress(hta_sql.RankError):
        remove_runs(store, "second")


def _rename(store: Path) -> None:
    with suppress(hta_sql.RankError):
        rename_run(store, "second", "renamed")


WRITERS: dict[str, Callable[[Path], object]] = {
    "ingest": _ingest,
    "ingest again": _ingest_again,
    "shard": _shard,
    "publish": _publish,
    "catalog": build_catalog,
    "materialize": lambda store: materialize_answers(store, [*QUESTIONS, "gpu_summary"]),
    "tag": lambda store: tag_runs(store, "first", {"commit": "abc"}),
    "rename": _rename,
    "remove": _remove,
    "restore": _restore,
}


PREPARED = {"restore": _cut_off}
"""Writer ─▶ function that prepares the store for this writer."""


@dataclass
class Made:
    """A store and the backup to restore it from."""

    store: Path
    backup: Path

    def put_back(self, writer: str = "") -> None:
        """Restore the store, and prepare it for a writer."""
        restore(self.store, self.backup)
        shutil.rmtree(self.store.with_name(f"{self.store.name}.shadow"), ignore_errors=True)
        if writer in PREPARED:
            PREPARED[writer](self.store)


@dataclass
class Truth:
    """The file operations of a writer, and the answers of the store before and after it."""

    operations: list[str]
    before: Answers
    after: Answers


def truth_of(made: Made, writer: str) -> Truth:
    """Run a writer without a fault; return its operations and the answers before and after it."""
    made.put_back(writer)
    before = answers(made.store)
    made.put_back(writer)
    with faults(made.store) as layer:
        WRITERS[writer](made.store)
    return Truth(layer.seen, before, answers(made.store))


def is_partial(seen: Answers, writer: str, how: str, truth: Truth) -> bool:
    """Return whether the answers show a valid partial result of a writer.

    A failed ingest has published the ranks that it could read.
    """

    def rows(found: Answers) -> set[tuple[object, ...]]:
        return {row for run in found.values() for row in run}

    return (
        how == "fail"
        and writer.startswith("ingest")
        and rows(seen) <= rows(truth.before) | rows(truth.after)
    )


def survived(made: Made, writer: str, at: int, how: str, truth: Truth) -> str:
    """Inject a fault into one operation, query the store, and run the writer again.

    Returns:
        The state that the query saw: ``before`` or ``after`` the writer.

    Raises:
        AssertionError: A reader saw neither the old nor the new store, or the next run
            does not repair it.
    """
    made.put_back(writer)
    what = f"{how} of {writer} at {at}: {truth.operations[at]}"
    with suppress(StoppedError, OSError, HtaSqlError), faults(made.store, at, how):
        WRITERS[writer](made.store)
    seen = answers(made.store)
    assert seen in (truth.before, truth.after) or is_partial(seen, writer, how, truth), what
    WRITERS[writer](made.store)
    assert answers(made.store) == truth.after, what
    if at % WHOLE_LOOK:
        # Building and comparing a second catalog takes as long as everything else.
        manifest, folder = read_manifest(made.store), store_folder(made.store)
        assert faults_of(folder, files_of(manifest)) == [], what
    else:
        assert verify_store(made.store).faults == [], what
    return "after" if seen == truth.after else "before"


@dataclass
class Round:
    """Outcomes of injecting one kind of fault into a writer."""

    writer: str
    how: str
    operations: int
    tried: int
    after: int
    """Number of faults after which the new store was visible."""
    failed: list[str]

    def __str__(self) -> str:
        """Return a line with the counts, followed by the failures."""
        said = f"{self.operations} operations, {self.tried} tried; after {self.after} the new store"
        return "\n".join([f"{self.writer}, {self.how}: {said}", *self.failed])


def chosen(operations: list[str], most: int | None, only: tuple[str, ...] = ("",)) -> list[int]:
    """Return the indices of the operations to inject a fault into.

    Args:
        operations: All operations of the writer.
        most: Maximum number of operations with the same name, including the first and the last;
            None: all.
        only: Prefixes of the operations to include.
    """
    places: dict[str, list[int]] = {}
    for at, operation in enumerate(operations):
        if operation.startswith(only):
            places.setdefault(operation, []).append(at)
    if most is None:
        return sorted(at for found in places.values() for at in found)
    return sorted(
        {
            found[number * (len(found) - 1) // max(1, most - 1)]
            for found in places.values()
            for number in range(most)
        }
    )


def round_of(made: Made, writer: str, how: str, most: int | None = None) -> Round:
    """Inject one kind of fault into the selected operations of a writer, one at a time."""
    truth = truth_of(made, writer)
    seen, failed = [], []
    wanted = chosen(truth.operations, most, ONLY.get(how, ("",)))
    for at in wanted:
        try:
            seen.append(survived(made, writer, at, how, truth))
        except Exception as error:  # noqa: BLE001 - reported with all others
            failed.append(f"{how} of {writer} at {at}, {truth.operations[at]}: {error!r:.300}")
    return Round(writer, how, len(truth.operations), len(wanted), seen.count("after"), failed)


def make(folder: Path) -> Made:
    """Create a store with two runs, materialized answers and a shard, and back it up."""
    store = make_store(folder)
    answers(store)
    shutil.copytree(store, folder / "backup")
    return Made(store, folder / "backup")


def listed(made: Made) -> Iterator[str]:
    """Yield the distinct file operations of each writer."""
    for writer in WRITERS:
        yield from sorted({f"{writer}: {done}" for done in truth_of(made, writer).operations})


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("writers", nargs=-1, type=click.Choice(list(WRITERS)))
@click.option("--how", multiple=True, type=click.Choice(HOW), help="Ways; default: all.")
@click.option("--most", type=int, help="Operations of one name that are tried; default: all.")
@click.option("--list", "is_list", is_flag=True, help="Write the list of operations anew.")
def main(
    folder: Path, writers: tuple[str, ...], how: tuple[str, ...], most: int | None, is_list: bool
) -> None:
    """Inject faults into writers of a store that is created in a new FOLDER."""
    logging.disable(logging.WARNING)
    # A fault also stops the thread that checks file sizes; do not print its exception.
    threading.excepthook = lambda _: None
    made = make(folder)
    if is_list:
        OPERATIONS.write_text("".join(f"{line}\n" for line in sorted(listed(made))), "utf-8")
        return
    rounds = [
        told(round_of(made, writer, way, most))
        for writer in writers or WRITERS
        for way in how or HOW
    ]
    conclude(rounds, "operations")


def told(found: Round) -> Round:
    """Print the outcomes for one kind of fault and the CPU time so far, and return the outcomes."""
    click.echo(f"{time.strftime('%T')} {found} ({time.process_time():.0f} CPU s so far)")
    sys.stdout.flush()
    return found


def conclude(rounds: list[Round], what: str) -> NoReturn:
    """Print the totals, and exit with code 1 if any case failed."""
    tried, failed = sum(one.tried for one in rounds), sum(len(one.failed) for one in rounds)
    click.echo(f"{tried} {what} went wrong, {failed} stores with them.")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
