"""Traces whose file names are not UTF-8 can be read, listed, repaired and opened."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hta_sql
from hta_sql.cli import main
from hta_sql.exports.redaction.exporting import export_redacted
from hta_sql.exports.redaction.names import Redactor
from hta_sql.overlay.source import source_of
from hta_sql.store.disk.manifest import read_manifest
from hta_sql.traces.names import path_of, path_text
from tests.golden_cases import TESTS
from tests.shared_stores import ingest_only

NAME = os.fsdecode(b"rank\xff0.json")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Write two traces, one of which has a name that is not UTF-8."""
    folder = tmp_path / "job"
    folder.mkdir()
    shutil.copy(TESTS / "traces" / "two_ranks_1.json", folder / "rank1.json")
    try:
        shutil.copy(TESTS / "traces" / "two_ranks_0.json", folder / NAME)
    except OSError:
        pytest.skip("the file system has UTF-8 names only")
    return folder


@given(name=st.binary(min_size=1).filter(lambda name: b"\0" not in name))
def test_the_text_of_a_path_is_reversible(name: bytes) -> None:
    """Any path can be stored as UTF-8 and restored, and UTF-8 paths are stored unchanged."""
    path = os.fsdecode(name)
    text = path_text(path)
    text.encode()
    assert os.fsencode(path_of(text)) == name or text == path
    if not text.startswith("file://"):
        assert path_of(text) == path == text


def test_a_rank_with_such_a_name_is_read_once(job: Path) -> None:
    """The store records the path as a URL and recognizes the file in the next ingest."""
    store = job.parent / "job.store"
    ingest_only(job, store)
    entries = read_manifest(store).entries
    text = f"file://{job.as_posix()}/rank%FF0.json"
    assert [entry.source for entry in entries] == [text, f"{job}/rank1.json"]
    assert entries[0].path == str(job / NAME)
    json.loads((store / "manifest.json").read_text(encoding="utf-8").encode().decode())
    before = read_manifest(store).named_files()
    ingest_only(job, store)
    assert read_manifest(store).named_files() == before
    with hta_sql.open(store) as opened:
        assert opened.sql("SELECT source FROM ranks WHERE rank = 0").rows() == [(text,)]
        assert source_of(opened, "job", 0).path == str(job / NAME)


def test_commands_take_such_a_trace(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands accept a path that is not UTF-8, and a folder or store with such a path."""
    store = job.parent / "job.store"
    slice_ = job.parent / "slice.json"
    for command in (
        ("ingest", job / NAME, "-o", job.parent / "one.store"),
        ("ingest", job, "-o", store),
        ("doctor", job),
        ("doctor", store),
        ("list", store),
        ("run", job, "gpu_kernel_types"),
        ("sql", store, "SELECT source FROM ranks"),
        ("open", store, "--ranks", "0", "-o", slice_),
    ):
        assert main([str(part) for part in command]) == 0, command
    assert "Traceback" not in capsys.readouterr().err
    assert json.loads(slice_.read_text(encoding="utf-8"))["traceEvents"]
    export_redacted(store, job.parent / "shared", "trace", Redactor("key"))
    assert len(list((job.parent / "shared").rglob("rank*.json.gz"))) == 2


def test_a_damaged_rank_with_such_a_name_is_read_again(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A damaged run is ingested again even if the path of its trace is not UTF-8."""
    store = job.parent / "job.store"
    ingest_only(job, store)
    for file in read_manifest(store).entries[0].files.values():
        (store / file["path"]).unlink()
    assert main(["verify", str(store)]) == 1
    assert "--force" in capsys.readouterr().err
    assert main(["ingest", str(job), "-o", str(store), "--force"]) == 0
    assert main(["verify", str(store)]) == 0


def test_a_store_with_such_a_path_is_refused(tmp_path: Path) -> None:
    """A store path that is not UTF-8 is refused, because DuckDB cannot open it."""
    with pytest.raises(hta_sql.StoreError, match=r"must be UTF-8.*%FF"):
        hta_sql.open(tmp_path / os.fsdecode(b"\xff.store"))
