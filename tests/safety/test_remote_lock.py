"""Ingests into a store at a URL run one after the other, and dead processes do not block them."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql.store.disk import remote_lock
from hta_sql.store.disk.folder import RemoteFolder, store_folder
from hta_sql.store.disk.locks import LOCK, store_lock
from tests.safety.test_object_storage import (
    DURATIONS,
    bucket,
    memory,
    put_traces,
    s3,
    s3_server,
)
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.safety.conftest import BusyTimes

__all__ = ["bucket", "memory", "s3", "s3_server"]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the lock times to tenths of a second."""
    monkeypatch.setattr(remote_lock, "BEAT_S", 0.1)
    monkeypatch.setattr(remote_lock, "STALE_S", 0.8)
    monkeypatch.setattr(remote_lock, "SETTLE_S", 0.4)
    monkeypatch.setattr(remote_lock, "POLL_S", 0.02)


def folder_of(store: str) -> RemoteFolder:
    """Return the folder of a store at a URL."""
    folder = store_folder(store)
    assert isinstance(folder, RemoteFolder)
    return folder


def test_one_object_is_created_once(bucket: str) -> None:
    """Of eight concurrent attempts to create an object, exactly one succeeds."""
    folder = folder_of(f"{bucket}/create.store")
    with ThreadPoolExecutor(8) as pool:
        tries = [pool.submit(folder.create, "x", str(n).encode()) for n in range(8)]
        won = [n for n, done in enumerate(tries) if done.result()]
    assert len(won) == 1
    assert folder.read("x") == str(won[0]).encode()


@pytest.mark.usefixtures("quick")
def test_the_second_waits(
    bucket: str, busy_times: BusyTimes, caplog: pytest.LogCaptureFixture
) -> None:
    """The second ingest waits for the first, even if the first needs to renew its lock."""
    traces, store = put_traces(f"{bucket}/wait/job", DURATIONS), f"{bucket}/wait/job.store"
    holding = threading.Event()
    released: list[float] = []

    def hold() -> None:
        with store_lock(store_folder(store)):
            holding.set()
            time.sleep(2.0)
            released.append(time.monotonic())

    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.WARNING):
        held = pool.submit(hold)
        holding.wait()
        ingest_only(traces, store, lock_timeout=30)
        assert released
        held.result()
    assert "waiting up to 30 s for it" in caplog.text
    assert "taking it over" not in caplog.text
    assert busy_times(store) == DURATIONS
    assert LOCK not in folder_of(store).files("")


@pytest.mark.usefixtures("quick")
def test_after_the_timeout_it_fails(bucket: str) -> None:
    """An ingest that times out names the lock in its error, and has written nothing."""
    traces, store = put_traces(f"{bucket}/fail/job", DURATIONS), f"{bucket}/fail/job.store"
    with store_lock(store_folder(store)):
        for timeout in (0.0, 0.3):
            with pytest.raises(hta_sql.StoreError, match="is still writing") as caught:
                hta_sql.ingest(traces, store, lock_timeout=timeout)
            assert f"{store}/{LOCK}" in str(caught.value)
        assert folder_of(store).files("") == [LOCK]


@pytest.mark.usefixtures("quick")
def test_the_lock_of_a_dead_process_is_taken_over(
    bucket: str, busy_times: BusyTimes, caplog: pytest.LogCaptureFixture
) -> None:
    """The lock of a dead process is taken over when it has not been renewed for ``STALE_S``."""
    traces, store = put_traces(f"{bucket}/dead/job", DURATIONS), f"{bucket}/dead/job.store"
    folder_of(store).replace(
        LOCK, b'{"holder": "process 7 on elsewhere", "token": "t", "beats": 3}'
    )
    with pytest.raises(hta_sql.StoreError, match="process 7 on elsewhere"):
        hta_sql.ingest(traces, store, lock_timeout=0.2)
    started = time.monotonic()
    with caplog.at_level(logging.WARNING):
        ingest_only(traces, store, lock_timeout=30)
    assert time.monotonic() - started >= remote_lock.STALE_S
    assert "was left behind by process 7 on elsewhere" in caplog.text
    assert busy_times(store) == DURATIONS
    assert LOCK not in folder_of(store).files("")


@pytest.mark.usefixtures("quick")
def test_a_dead_lock_has_one_heir(bucket: str) -> None:
    """Three writers that take over a stale lock hold it one after the other."""
    folder = folder_of(f"{bucket}/heirs/job.store")
    folder.replace(LOCK, b"left behind")
    inside: list[int] = []
    most: list[int] = []

    def take(number: int) -> None:
        with store_lock(folder, 30):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.3)
            inside.remove(number)

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(take, number) for number in range(3)]:
            done.result()
    assert most == [1, 1, 1]


def test_two_ingests_lose_nothing(bucket: str) -> None:
    """Two concurrent ingests store both runs."""
    store = f"{bucket}/both/job.store"

    def ingest(run: str) -> None:
        ingest_only(put_traces(f"{bucket}/both/{run}", DURATIONS), store, run=run)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ingest, ("one", "two"))) == [None, None]
    with hta_sql.open(store) as opened:
        assert opened.runs() == ["one", "two"]


@pytest.mark.usefixtures("quick")
def test_a_lost_lock_is_said_and_left(memory: str, caplog: pytest.LogCaptureFixture) -> None:
    """A process whose lock was taken over while it hung does not release the new lock."""
    folder = folder_of(f"{memory}/lost/job.store")
    with caplog.at_level(logging.ERROR), store_lock(folder):
        folder.replace(LOCK, b"another one's")
        time.sleep(0.5)
    assert "was taken over" in caplog.text
    assert folder.read(LOCK) == b"another one's"
