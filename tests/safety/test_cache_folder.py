"""Without a writable home folder, everything works, but nothing is cached between processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql import machine
from hta_sql.store.disk import location
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.locks import store_lock
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.safety.conftest import BusyTimes, WriteTraces


@pytest.fixture(
    scope="module",
    params=[
        "a file",
        "no such device",
        "a home that is a file",
        "one part of it",
    ],
)
def no_cache(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Make the cache folder unwritable in one of four ways."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        break_cache(request.param, tmp_path_factory.mktemp("cache"), monkeypatch)
        forget()
        yield
    forget()


def break_cache(reason: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set up a cache folder that cannot be created or written."""
    (folder / "file").write_text("")
    if reason == "a home that is a file":
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", str(folder / "file"))
    elif reason == "one part of it":
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        (folder / "cache" / "hta_sql").mkdir(parents=True)
        for name in ("templates", "catalogs"):
            (folder / "cache" / "hta_sql" / name).write_text("")
    else:
        place = "/proc/nowhere" if reason == "no such device" else folder / "file"
        monkeypatch.setenv("XDG_CACHE_HOME", str(place))


def forget() -> None:
    """Forget the location of the cache folder."""
    machine.cache_folder.cache_clear()
    machine._temporary_folder.cache_clear()


@pytest.mark.usefixtures("no_cache")
def test_an_analysis_works_without_a_cache(
    write_traces: WriteTraces, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Analyses of read-only traces work without a cache; a warning recommends a writable one."""
    monkeypatch.setattr(location, "is_writable", lambda _: False)
    with hta_sql.TraceAnalysis(trace_dir=str(write_traces({0: 100.0}))) as analyzer:
        assert list(analyzer.get_temporal_breakdown(visualize=False)["compute_time(us)"]) == [100.0]
    assert caplog.text.count("Set XDG_CACHE_HOME to a writable folder") == 1


@pytest.mark.usefixtures("no_cache")
def test_a_store_that_is_being_written_opens_without_a_cache(
    tmp_path: Path, write_traces: WriteTraces, busy_times: BusyTimes
) -> None:
    """A store without a catalog opens while it is being written, even without a cache folder."""
    store = tmp_path / "job.store"
    ingest_only(write_traces({0: 100.0}), store)
    (store / "catalog.duckdb").unlink()
    with store_lock(store_folder(store)):
        assert busy_times(store) == {0: 100.0}


@pytest.mark.usefixtures("no_cache")
def test_no_folder_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no folder for temporary files exists, the library raises a StoreError."""

    def refuse(**_: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    forget()
    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(hta_sql.StoreError, match="temporary"):
        machine.cache_folder("templates")


FORKS = """
import os, sys
from hta_sql.machine import cache_folder
folder = cache_folder("templates")
if os.fork() == 0:
    sys.exit(0)
os.wait()
assert folder.is_dir()
print(folder)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing to fork")
def test_the_folder_ends_with_the_process_that_made_it(tmp_path: Path) -> None:
    """The temporary cache folder is deleted when its process ends, but not when a fork ends."""
    (tmp_path / "file").write_text("")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "file")}
    run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run
    command = [sys.executable, "-c", FORKS]
    done = run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not Path(done.stdout.strip()).exists()
