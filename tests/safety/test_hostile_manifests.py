"""Malformed manifests and shards from an untrusted source cause clear errors, not tracebacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql.store.disk.digests import CHECKSUM, with_checksum
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.manifest import parse_manifest, read_manifest
from hta_sql.store.disk.shard_files import protected_files, read_shards
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore
    from tests.safety.conftest import WriteTraces

Damage = Callable[[dict[str, Any]], object]

DAMAGES: dict[str, Damage] = {
    "start_ns": lambda m: m["entries"][0].update(start_ns="x"),
    "beyond 64 bits": lambda m: m["entries"][0].update(start_ns=1 << 63),
    "step_names": lambda m: m["entries"][0].update(step_names=5),
    "a step's name": lambda m: m["entries"][0].update(step_names=[5]),
    "run": lambda m: m["entries"][0].update(run=["a"]),
    "rank": lambda m: m["entries"][0].update(rank="a"),
    "rank 2^31": lambda m: m["entries"][0].update(rank=1 << 31),
    "true for a rank": lambda m: m["entries"][0].update(rank=True),
    "fingerprint": lambda m: m["entries"][0].update(fingerprint=None),
    "options": lambda m: m["entries"][0].update(options=3),
    "facts": lambda m: m["entries"][0].update(facts=3),
    "files": lambda m: m["entries"][0].update(files=[1]),
    "no path": lambda m: m["entries"][0]["files"]["ranks"].pop("path"),
    "path": lambda m: m["entries"][0]["files"]["ranks"].update(path=7),
    "rows": lambda m: m["entries"][0]["files"]["ranks"].update(rows="x"),
    "an entry": lambda m: m.update(entries=[None]),
    "entries": lambda m: m.update(entries={"a": 1}),
    "schemas": lambda m: m.update(schemas=3),
    "published": lambda m: m.update(published=[3]),
    "tags": lambda m: m.update(tags=5),
    "writer": lambda m: m.update(writer=5),
    "materialized": lambda m: m.update(
        materialized=[dict.fromkeys(("table", "run", "key", "path", "rows"), 1)]
    ),
}


def damaged(manifest: bytes, damage: Damage) -> bytes:
    """Return a manifest with a changed value and a valid checksum."""
    values = json.loads(manifest)
    del values[CHECKSUM]
    damage(values)
    return with_checksum(values)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_values_of_another_type(tiny_store: TraceStore, damage: Damage) -> None:
    """A manifest value of the wrong type raises an error that names the manifest."""
    path = Path(tiny_store.path, "manifest.json")
    with pytest.raises(hta_sql.StoreError, match=r"manifest\.json"):
        parse_manifest(damaged(path.read_bytes(), damage), store_folder(tiny_store.path))


@pytest.mark.parametrize("content", [b"[" * 200_000, b"null", b"5", b"\xff"])
def test_what_is_no_manifest(tmp_path: Path, content: bytes) -> None:
    """A manifest that is not valid JSON or does not have the manifest format is refused."""
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(hta_sql.StoreError, match=r"manifest\.json"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("content", ["null", "[" * 200_000, "{", '{"format": "hta_sql shard"}'])
def test_what_is_no_shard(tmp_path: Path, content: str) -> None:
    """An invalid shard is skipped, and no file that may belong to it is deleted."""
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "job.1-of-2.json").write_text(content)
    files = ["tables/gpu_ops/a.parquet", "notes.txt"]
    assert read_shards(store_folder(tmp_path)) == []
    assert protected_files(store_folder(tmp_path), files) == {files[0]}


def test_a_damaged_shard_holds_nobody_up(
    write_traces: WriteTraces, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged shard blocks no other writer, and its files remain until it is ingested again."""
    store, traces = tmp_path / "job.store", write_traces({0: 100.0, 1: 200.0})
    hta_sql.ingest_shard(traces, store, shard=(1, 2))
    written = set(store.rglob("*.parquet"))
    (shard,) = (store / "shards").glob("*.json")
    shard.write_text("null")
    ingest_only({0: str(traces / "rank0.json")}, store, run="other")
    assert "traces.1-of-2.json' is not a shard that this version can publish" in caplog.text
    assert all(path.exists() for path in written)
    for number in (1, 2):
        hta_sql.ingest_shard(traces, store, shard=(number, 2))
    with hta_sql.publish(store, expect=2) as opened:
        assert opened.runs() == ["other", "traces"]
    assert not any(path.exists() for path in written)
