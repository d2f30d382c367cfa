"""Redacts a store: copies its tables, with private strings replaced and all numbers unchanged."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hta_sql.errors import StoreError
from hta_sql.exports.redaction.arguments import redacted_json
from hta_sql.exports.redaction.names import Redactor
from hta_sql.exports.redaction.stack_frames import (
    redacted_dump_file,
    redacted_snapshot_frame,
    redacted_source_stacks,
)
from hta_sql.store.catalog.build import publish_manifest
from hta_sql.store.catalog.columns import StoredFiles, stored_files
from hta_sql.store.catalog.rank_scope import with_facts
from hta_sql.store.disk.digests import file_digest
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.manifest import TABLES, Fingerprint, Manifest, RankEntry, read_manifest
from hta_sql.traces.writing import make_folder

NAMES = {
    "steps": "annotation",
    "cpu_ops": "operator",
    "runtime_calls": "runtime",
    "gpu_ops": "kernel",
    "annotations": "annotation",
    "python_calls": "frame",
    "counters": "counter",
    "devices": "device",
    "cluster_communication": "operator",
    "fr_frames": "frame",
    "et_nodes": "operator",
    "snapshot_annotations": "annotation",
}
"""Table ─▶ kind of the names in its column ``name``; ``event`` for tables not listed."""

STACK_NAMES = {
    "operator": "operator",
    "runtime": "runtime",
    "annotation": "annotation",
    "step": "annotation",
    "module": "frame",
    "frame": "frame",
}
"""Kind of a row of ``stacks`` ─▶ kind of its name."""

KIND_OF_COLUMN = {
    "run": "run",
    "source": "trace",
    "host_name": "host",
    "trace_id": "trace",
    **dict.fromkeys(
        ("rank_source", "kind", "class", "class_source", "comm_library", "comm_role"), "label"
    ),
    **dict.fromkeys(("link_type", "parallel_mode"), "label"),
    **dict.fromkeys(("backend", "backend_config"), "backend"),
    **dict.fromkeys(("nccl_version", "trace_schema_version"), "version"),
    "pg_name": "group_name",
    "pg_desc": "group",
    **dict.fromkeys(("pg_ranks", "in_split_sizes", "out_split_sizes"), "scalar"),
    **dict.fromkeys(("input_dims", "input_strides"), "scalar"),
    **dict.fromkeys(("input_sizes", "output_sizes", "member_ranks"), "scalar"),
    "op": "collective",
    **dict.fromkeys(("state", "action", "stage", "segment_type"), "label"),
    "pool_id": "scalar",
    "thread_id": "thread",
    "call_stack": "stack",
    "captured_op_name": "operator",
    "captured_frame": "frame",
    "module_path": "module",
    "match_method": "label",
    "module_hierarchy": "module",
    "collective": "collective",
    "elem_type": "type",
    "sync_kind": "kernel",
    "category": "category",
    **dict.fromkeys(("phase", "binding_point", "scope"), "phase"),
    "flow_id": "id",
    **dict.fromkeys(("pid", "tid", "pid_text", "tid_text"), "thread"),
    "series": "counter",
    "operator": "operator",
    "kernel_backend": "backend",
    "reason": "reason",
}
"""Column ─▶ kind of its texts; texts of other columns are hashed."""

JSON_KINDS = {
    "metadata": "scalar",
    "properties": "device",
    "args": "thread",
    "input_types": "type",
    "output_types": "type",
    "concrete_inputs": "scalar",
    **dict.fromkeys(("inputs", "outputs", "input_shapes", "output_shapes"), "scalar"),
    **dict.fromkeys(("post_grad_nodes", "pre_grad_nodes"), "node"),
}
"""JSON column ─▶ kind of texts whose key does not determine their kind."""

_BATCH_ROWS = 100_000


def redact_store(
    source: StoreFolder,
    target: Path,
    redact: Redactor,
    runs: Collection[str] = (),
    ranks: Collection[int] = (),
) -> None:
    """Copy a store with private strings redacted.

    Rows are copied in order, so that every analysis has the same values. Materialized answers are
    not copied; the copy recomputes them.

    Args:
        source: The store.
        target: Folder of the copy.
        redact: Replaces names.
        runs: Runs to copy; empty: all.
        ranks: Ranks to copy; empty: all.

    Raises:
        StoreError: The target exists already.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(f"{str(target)!r} already exists; choose a new folder.")
    files = stored_files(read_manifest(source), source)
    manifest = files.manifest
    chosen = [
        entry
        for entry in manifest.entries
        if (not runs or entry.run in runs) and (not ranks or entry.rank in ranks)
    ]
    copies = _copied_files(
        source, target, redact, replace(files, manifest=replace(manifest, entries=chosen))
    )
    entries = [_copied(redact, entry, copies) for entry in chosen]
    make_folder(target)
    folder = store_folder(target)
    publish_manifest(folder, with_facts(Manifest(entries, schemas=manifest.schemas), folder))


def _copied_files(
    source: StoreFolder, target: Path, redact: Redactor, files: StoredFiles
) -> dict[str, dict[str, Any]]:
    """Copy files; return source path ─▶ file entry of the copy, without the rank's row count."""
    runs = {f["path"]: e.run for e in files.manifest.entries for f in e.files.values()}
    copies: dict[str, dict[str, Any]] = {}
    for table in sorted({table for entry in files.manifest.entries for table in entry.files}):
        for part in files.parts(table):
            for path in part.paths:
                folder = f"{TABLES}/{table}/run={redact('run', runs[path])}/{path.split('/')[-2]}"
                name = f"{folder}/{uuid.uuid4().hex[:12]}.parquet"
                copy = target / name
                make_folder(copy.parent)
                rows = _copy_table(_opened(source, path), copy, table, redact, part.ranks)
                size, digest = copy.stat().st_size, file_digest(copy)
                copies[path] = {"path": name, "file_rows": rows, "bytes": size, "sha256": digest}
    return copies


def _copied(redact: Redactor, entry: RankEntry, copies: Mapping[str, dict[str, Any]]) -> RankEntry:
    """Return the entry of a redacted rank."""
    files = {
        table: {**copies[file["path"]], "rows": file["rows"]} for table, file in entry.files.items()
    }
    return RankEntry(
        run=redact("run", entry.run),
        rank=entry.rank,
        source=redact("trace", entry.source),
        fingerprint=Fingerprint(0, 0, ""),
        rank_source=redact("label", entry.rank_source),
        event_count=entry.event_count,
        quarantined=entry.quarantined,
        start_ns=entry.start_ns,
        step_names=[redact("annotation", name) for name in entry.step_names],
        options={key: entry.options[key] for key in ("definitions",) if key in entry.options},
        files=files,
        schema=entry.schema,
        facts={},
        end_ns=entry.end_ns,
        span=entry.span,
        role=redact.hashed("role", entry.role) if entry.role else None,
        first_rank=entry.first_rank,
    )


def _opened(folder: StoreFolder, name: str) -> Any:
    return str(folder.local / name) if folder.local else pa.BufferReader(folder.read(name))


def _copy_table(
    source: Any, target: Path, table: str, redact: Redactor, ranks: Collection[int] | None
) -> int:
    """Copy a file, or the rows of some ranks in it; return the number of rows."""
    rows = 0
    with pq.ParquetFile(source) as file:
        # Only the columns: other metadata in a file may contain anything.
        schema = pa.schema([(f.name, _plain(f.type)) for f in file.schema_arrow])
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            for read in file.iter_batches(_BATCH_ROWS):
                batch = read if ranks is None else _of_ranks(read, ranks)
                rows += batch.num_rows
                columns = [
                    _redacted(batch, place, table, redact) for place in range(batch.num_columns)
                ]
                writer.write_batch(pa.record_batch(columns, schema=schema))
    return rows


def _of_ranks(batch: pa.RecordBatch, ranks: Collection[int]) -> pa.RecordBatch:
    found = batch.column(batch.schema.names.index("rank"))
    return batch.filter(pc.is_in(found, pa.array(ranks, found.type)))


def _plain(kind: pa.DataType) -> pa.DataType:
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if is_text or isinstance(kind, pa.BaseExtensionType):
        return pa.string()
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise StoreError(f"A column of type {kind} cannot be redacted.")
    return kind


def _redacted(batch: pa.RecordBatch, place: int, table: str, redact: Redactor) -> pa.Array:
    name, values = batch.schema.names[place], batch.column(place)
    if _plain(values.type) != pa.string():
        return values
    values = values.cast(pa.string())
    if (table, name) == ("stacks", "name"):
        kinds = batch.column(batch.schema.names.index("kind")).to_pylist()
        pairs = zip(kinds, values.to_pylist(), strict=True)
        new = [text and redact(STACK_NAMES.get(kind, "event"), text) for kind, text in pairs]
        return pa.array(new, pa.string())
    change = _change(table, name, redact)
    coded = values.dictionary_encode()
    known = [None if text is None else change(text) for text in coded.dictionary.to_pylist()]
    return pa.array(known, pa.string()).take(coded.indices)


def _change(table: str, column: str, redact: Redactor) -> Callable[[str], str]:
    """Return the function that redacts each string in a column."""
    if (table, column) == ("fr_frames", "file"):
        return lambda text: redacted_dump_file(redact, text)
    if table == "snapshot_frames" and column in ("file", "name"):
        return lambda text: redacted_snapshot_frame(redact, column, text)
    if column == "source_stacks":
        return lambda text: redacted_source_stacks(redact, text)
    if table == "compiled_kernels" and column == "name":
        # AOTInductor's calls are also names of operators.
        return lambda text: redact("operator" if text.startswith("aoti_") else "kernel", text)
    if column in JSON_KINDS:
        return lambda text: redacted_json(redact, JSON_KINDS[column], text)
    kind = NAMES.get(table, "event") if column == "name" else KIND_OF_COLUMN.get(column)
    return lambda text: redact(kind, text) if kind else redact.hashed(column, text)
