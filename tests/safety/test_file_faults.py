"""A store survives a failure, crash or power loss at each file operation of each writer.

After each fault a reader sees the old or the new store, and the next run repairs it.
``python -m tests.safety.fault_rounds FOLDER --list`` rewrites the list of operations.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import pytest

from hta_sql.traces.writing import sync
from tests.safety.fault_rounds import (
    HOW,
    OPERATIONS,
    WRITERS,
    Made,
    make,
    round_of,
    survived,
    truth_of,
)
from tests.safety.file_faults import StoppedError, faults

QUICK = ("ingest", "materialize")
"""Writers that are checked in every test run."""


def test_what_was_not_flushed_is_lost(tmp_path: Path) -> None:
    """A power loss discards file contents and file names that were not flushed."""
    folder = tmp_path / "store"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "old").write_text("old")
    with suppress(StoppedError), faults(folder, 7, "power"):
        (folder / "whole").write_text("new")
        sync(folder / "whole")
        (folder / "empty").write_text("new")
        sync(folder)
        (folder / "nameless").write_text("new")
        (folder / "below" / "old").unlink()
        (folder / "below").rmdir()
        (folder / "never").write_text("new")
    found = {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert found == {"old": "old", "whole": "new", "empty": ""}


def test_what_is_torn_is_there_by_half(tmp_path: Path) -> None:
    """A torn write leaves half of its data, and no later operation takes effect."""
    with suppress(StoppedError), faults(tmp_path, 0, "torn"):
        (tmp_path / "half").write_text("1234")
        (tmp_path / "never").write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["half"]
    assert (tmp_path / "half").read_text() == "12"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Create a store with two runs, materialized answers and a shard."""
    return make(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize(
    "writer",
    [
        writer if writer in QUICK else pytest.param(writer, marks=pytest.mark.slow(reason="faults"))
        for writer in WRITERS
    ],
)
def test_every_operation_has_a_case(writer: str, made: Made) -> None:
    """The list of operations in the repository has every operation of each writer."""
    seen = {f"{writer}: {operation}" for operation in truth_of(made, writer).operations}
    lines = OPERATIONS.read_text("utf-8").splitlines()
    assert sorted(seen) == [line for line in lines if line.startswith(f"{writer}: ")]


@pytest.mark.parametrize(
    ("writer", "how"), [("publish", "fail"), ("tag", "stop"), ("publish", "power")]
)
def test_some_operations(writer: str, how: str, made: Made) -> None:
    """A store survives a failure, a crash and a power loss while it is written."""
    truth = truth_of(made, writer)
    count = len(truth.operations)
    survived(
        made, writer, {"fail": count // 2, "stop": count - 2, "power": count // 3}[how], how, truth
    )


# A fault also stops the thread that checks file sizes.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.slow(reason="faults")
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("writer", WRITERS)
def test_each_operation_in_order(
    writer: str, how: str, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """A store survives each kind of fault in every operation of a writer."""
    found = round_of(made, writer, how)
    with capsys.disabled():
        sys.stdout.write(f"\n{found}\n")
    assert found.failed == []
