"""If the disk is full, an error says so, the old store stays intact and no file is orphaned."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql.store.disk.manifest import read_manifest
from hta_sql.traces import writing
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.safety.conftest import BusyTimes, WriteTraces


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 16 MB, or skip the test if the user may not mount."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("may not mount here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)  # noqa: S603, S607


@pytest.mark.parametrize(
    "free",
    [
        0,
        20_000,
        300_000,
    ],
)
def test_a_full_disk(
    small_disk: Path, write_traces: WriteTraces, busy_times: BusyTimes, free: int
) -> None:
    """If the disk fills up during an ingest, the old store stays intact."""
    store = small_disk / "job.store"
    ingest_only(write_traces({0: 100.0, 1: 100.0}), store)
    ballast = small_disk / "ballast"
    fill(ballast, free)
    traces = write_traces({0: 200.0, 1: 200.0}, events=2000)
    with pytest.raises(hta_sql.StoreError, match="No space left while writing"):
        hta_sql.ingest(traces, store)
    assert busy_times(store) == {0: 100.0, 1: 100.0}
    ballast.unlink()
    ingest_only(traces, store)
    assert busy_times(store) == {0: 400_000.0, 1: 400_000.0}
    assert not list(store.rglob("*.partial"))


def fill(ballast: Path, free: int) -> None:
    """Fill a disk until only a given number of bytes is free."""
    status = os.statvfs(ballast.parent)
    ballast.write_bytes(bytes(status.f_bavail * status.f_frsize - free))


@pytest.mark.parametrize("name", ["manifest.json", "catalog.duckdb"])
def test_a_full_disk_at_the_end(
    tmp_path: Path,
    write_traces: WriteTraces,
    busy_times: BusyTimes,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """If the disk fills up before the manifest is written, the old store remains.

    If it fills up before the catalog is written, the new store is valid.
    """
    store = tmp_path / "job.store"
    ingest_only(write_traces({0: 100.0}), store)
    before = read_manifest(store).named_files()
    publish_file = writing.publish_file

    def refuse(partial: Path, target: Path) -> None:
        if target.name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        publish_file(partial, target)

    with monkeypatch.context() as patched:
        patched.setattr(writing, "publish_file", refuse)
        with pytest.raises(hta_sql.StoreError, match="No space left while writing"):
            hta_sql.ingest(write_traces({0: 200.0}), store)
    new = name == "catalog.duckdb"
    assert busy_times(store) == {0: 200.0 if new else 100.0}
    found = {path.relative_to(store).as_posix() for path in store.glob("tables/**/*.parquet")}
    assert found == read_manifest(store).named_files()
    assert (found == before) == (not new)
    assert not list(store.rglob("*.partial"))
