"""A derived table is recomputed if its file is damaged, until it is materialized again."""

from __future__ import annotations

import shutil
from pathlib import Path

import fsspec
import pytest

import hta_sql
from hta_sql.library.objects import load_library
from hta_sql.store.catalog.materialize import materialize
from hta_sql.store.catalog.materialized_tables import ON_REQUEST, missing_tables
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.manifest import read_manifest
from tests.jobs.spec import PlantedJob
from tests.jobs.traces import write_job
from tests.shared_stores import ingest_only

JOB = PlantedJob(ranks=2, steps=3)

Answer = list[tuple[object, ...]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answer]:
    """Return a store with two runs and materialized derived tables, and an answer from them."""
    folder = tmp_path_factory.mktemp("materialized")
    for run in ("first", "second"):
        paths, _ = write_job(folder / run, JOB)
        ingest_only(paths, folder / "job.store", run=run)
    materialize(folder / "job.store")
    with hta_sql.open(folder / "job.store") as opened:
        return folder / "job.store", opened.run("collective_waits").rows()


@pytest.fixture
def store(whole: tuple[Path, Answer], tmp_path: Path) -> Path:
    """Copy the store with the materialized tables."""
    shutil.copytree(whole[0], tmp_path / "job.store")
    hta_sql.open(tmp_path / "job.store").close()
    return tmp_path / "job.store"


def kept_of(store: Path, run: str) -> Path:
    """Return the file with the materialized table ``matched_collectives`` of a run."""
    kept = read_manifest(store).materialized
    (path,) = (one.path for one in kept if (one.table, one.run) == ("matched_collectives", run))
    assert path
    return store / path


def damage(path: Path, how: str) -> None:
    """Truncate, empty or delete a file, or overwrite its footer or its pages."""
    content = path.read_bytes()
    broken = {
        "cut off": content[:99],
        "empty": b"",
        "footer": bytes(len(content) - 8) + content[-8:],
        "pages": content[:4] + bytes(200) + content[204:],
    }
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(broken[how])


@pytest.mark.parametrize(
    ("how", "run"),
    [
        ("cut off", "first"),
        ("gone", "second"),
        ("empty", "first"),
        ("footer", "second"),
        ("pages", "first"),
    ],
)
def test_it_is_computed_again(
    store: Path,
    whole: tuple[Path, Answer],
    how: str,
    run: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A warning names the damaged file, and ``materialize`` writes the table again."""
    path = kept_of(store, run)
    damage(path, how)
    with hta_sql.open(store) as opened:
        assert opened.run("collective_waits").rows() == whole[1]
        assert opened.run("collective_waits").rows() == whole[1]
        assert opened.runs() == ["first", "second"]
    assert path.name in caplog.text
    assert f"hta-sql materialize {store}" in caplog.text
    materialize(store)
    caplog.clear()
    with hta_sql.open(store) as opened:
        assert opened.run("collective_waits").rows() == whole[1]
    assert not caplog.text
    assert not missing_tables(read_manifest(store), load_library(), without=ON_REQUEST)
    assert kept_of(store, run) != path


def test_it_is_computed_by_each_question_while_the_store_is_locked(
    store: Path, whole: tuple[Path, Answer], caplog: pytest.LogCaptureFixture
) -> None:
    """While another process writes the store, each query recomputes the table."""
    path = kept_of(store, "first")
    damage(path, "cut off")
    before = read_manifest(store)
    with store_lock(store_folder(store)), hta_sql.open(store) as opened:
        assert opened.run("collective_waits").rows() == whole[1]
        assert opened.run("collective_waits").rows() == whole[1]
    assert read_manifest(store) == before
    assert path.name in caplog.text


def test_it_is_computed_by_each_question_at_a_url(store: Path, whole: tuple[Path, Answer]) -> None:
    """In a store at a URL, a query recomputes the table if its file turns out to be corrupt."""
    memory = fsspec.filesystem("memory")
    damage(kept_of(store, "second"), "cut off")
    for path in store.rglob("*"):
        if path.is_file():
            memory.pipe_file(f"/kept/{path.relative_to(store).as_posix()}", path.read_bytes())
    with hta_sql.open("memory://kept") as opened:
        assert opened.run("collective_waits").rows() == whole[1]
