"""Each file operation of each writer fails, is the last one, or is followed by a loss of power.

After each of them a reader sees the store of before or of after, and the next run mends it. The list of
operations is written anew by ``python -m tests.safety.test_file_faults FOLDER``.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import hta_sql
from hta_sql.errors import HtaSqlError
from hta_sql.ingestion.repair import repair_store
from hta_sql.store.catalog import build_catalog
from hta_sql.store.edits import remove_runs, rename_run, tag_runs
from hta_sql.store.faults import faults_of, of_entries, of_kept
from hta_sql.store.files import store_folder
from hta_sql.store.manifest import read_manifest
from hta_sql.store.materialize import keep_answers
from hta_sql.store.verify import verify_store
from tests.safety.damages import QUESTIONS, Answers, answers, make_store, restore
from tests.safety.file_faults import StoppedError, faults

OPERATIONS = Path(__file__).with_name("file_operations.txt")
HOW = ("fail", "stop", "power")

WHOLE_LOOK = 8
"""Of so many cases one has its catalog compared, too; of each the files are."""


def _ingest(store: Path) -> None:
    hta_sql.ingest(store.parent / "second", store, run="other", jobs=1).close()


def _ingest_again(store: Path) -> None:
    hta_sql.ingest(store.parent / "second", store, run="first", jobs=1).close()


def _shard(store: Path) -> None:
    hta_sql.ingest_shard(store.parent / "third", store, shard=(2, 2), jobs=1)


def _publish(store: Path) -> None:
    with suppress(hta_sql.StoreError):  # there is nothing left to publish when it is run again
        hta_sql.publish(store).close()


def _cut_off(store: Path) -> None:
    (entry,) = (e for e in read_manifest(store).entries if (e.run, e.rank) == ("first", 0))
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
    "materialize": lambda store: keep_answers(store, [*QUESTIONS, "gpu_summary"]),
    "tag": lambda store: tag_runs(store, "first", {"commit": "abc"}),
    "rename": _rename,
    "remove": _remove,
    "repair": repair_store,
}


QUICK = ("ingest", "materialize")
"""Those that are looked at in every run of the tests."""

PREPARED = {"repair": _cut_off}
"""Writer ─▶ what happens to the store before."""


@dataclass
class Made:
    """A store, and a copy to put back."""

    store: Path
    backup: Path

    def put_back(self, writer: str = "") -> None:
        """Make the store what it was, or what a writer is to find."""
        restore(self.store, self.backup)
        shutil.rmtree(self.store.with_name(f"{self.store.name}.shadow"), ignore_errors=True)
        if writer in PREPARED:
            PREPARED[writer](self.store)


@dataclass
class Truth:
    """What a writer does with files, and what a store answers before and after it."""

    operations: list[str]
    before: Answers
    after: Answers


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two runs, kept answers, a shard."""
    folder = tmp_path_factory.mktemp("faults")
    store = make_store(folder)
    answers(store)
    shutil.copytree(store, folder / "backup")
    return Made(store, folder / "backup")


def truth_of(made: Made, writer: str) -> Truth:
    """Let a writer write without a fault."""
    made.put_back(writer)
    before = answers(made.store)
    made.put_back(writer)
    with faults(made.store) as layer:
        WRITERS[writer](made.store)
    return Truth(layer.seen, before, answers(made.store))


def is_partial(seen: Answers, writer: str, how: str, truth: Truth) -> bool:
    """Say whether an ingest has published the ranks that it could read: it ends in an error then."""

    def rows(found: Answers) -> set[tuple[object, ...]]:
        return {row for run in found.values() for row in run}

    return (
        how == "fail"
        and writer.startswith("ingest")
        and rows(seen) <= rows(truth.before) | rows(truth.after)
    )


def survived(made: Made, writer: str, at: int, how: str, truth: Truth) -> str:
    """Let one operation go wrong, ask, and let the writer write again; returns what was asked of.

    Raises:
        AssertionError: A reader saw neither the store of before nor that of after, or the next run
            does not mend it.
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
        # To build a second catalog and compare it takes as long as all of the rest.
        manifest, folder = read_manifest(made.store), store_folder(made.store)
        files = [*of_entries(manifest.entries), *of_kept(manifest.kept)]
        assert faults_of(folder, files, deep=False) == [], what
    else:
        assert verify_store(made.store).faults == [], what
    return "after" if seen == truth.after else "before"


@pytest.mark.parametrize(
    "writer",
    [
        writer if writer in QUICK else pytest.param(writer, marks=pytest.mark.slow)
        for writer in WRITERS
    ],
)
def test_every_operation_has_a_case(writer: str, made: Made) -> None:
    """What a writer does with files is on a list; whatever is new there is run through below."""
    seen = {f"{writer}: {operation}" for operation in truth_of(made, writer).operations}
    lines = OPERATIONS.read_text("utf-8").splitlines()
    assert sorted(seen) == [line for line in lines if line.startswith(f"{writer}: ")]


@pytest.mark.parametrize(
    ("writer", "how"), [("publish", "fail"), ("tag", "stop"), ("publish", "power")]
)
def test_some_operations(writer: str, how: str, made: Made) -> None:
    """One of the first, one of the last, and one between."""
    truth = truth_of(made, writer)
    count = len(truth.operations)
    survived(
        made, writer, {"fail": count // 2, "stop": count - 2, "power": count // 3}[how], how, truth
    )


# A thread that looks at the sizes of files is stopped, too.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("writer", WRITERS)
def test_each_operation_in_order(
    writer: str, how: str, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of them; how many is printed."""
    truth = truth_of(made, writer)
    count = len(truth.operations)
    seen, failed = [], []
    for at in range(count):
        try:
            seen.append(survived(made, writer, at, how, truth))
        except Exception as error:  # noqa: BLE001 - told below, with all others
            failed.append(f"{how} of {writer} at {at}, {truth.operations[at]}: {error!r:.300}")
    with capsys.disabled():
        said = f"{count} operations; after {seen.count('after')} the new store was there"
        sys.stdout.write("\n".join(["", f"{writer}, {how}: {said}", *failed, ""]))
    assert failed == []


if __name__ == "__main__":
    place = make_store(Path(sys.argv[1]))
    shutil.copytree(place, Path(sys.argv[1], "backup"))
    found = {
        f"{writer}: {operation}"
        for writer in WRITERS
        for operation in truth_of(Made(place, Path(sys.argv[1], "backup")), writer).operations
    }
    OPERATIONS.write_text("".join(f"{line}\n" for line in sorted(found)), "utf-8")
