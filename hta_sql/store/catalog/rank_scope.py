"""Facts about runs and ranks that the catalog stores, so that queries need not open rank files.

These are facts that depend on versions or on all ranks of a run (common time origin, number of
steps), and the columns of the view ``runs``. Reading them from 1,600 rank files would take 0.2 s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import duckdb

from hta_sql.library.creation import RANK_SCOPE
from hta_sql.library.definitions import definitions
from hta_sql.library.sql_files import query_sql
from hta_sql.store.catalog.columns import StoredFiles, stored_files, viewed
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.manifest import Manifest, RankEntry, in_order
from hta_sql.store.disk.run_names import is_unix_time

Facts = dict[str, Any]
DESCRIBING = ("ranks", "devices")
"""Tables over which :func:`facts_of` needs described_… views."""


def facts_of(con: duckdb.DuckDBPyConnection) -> Iterator[tuple[tuple[str, int], Facts]]:
    """Yield (run, rank) and the facts of the rank for the manifest: column ─▶ value.

    Args:
        con: Connection with the views described_ranks and described_devices over the tables ranks
            and devices.
    """
    relation = con.sql(query_sql("rank_facts"))
    for run, rank, *values in relation.fetchall():
        yield (run, rank), dict(zip(relation.columns[2:], values, strict=True))


def with_facts(manifest: Manifest, folder: StoreFolder) -> Manifest:
    """Read the facts of each rank from its files, and return the manifest of a store with them.

    Raises:
        duckdb.Error: A file cannot be read.
    """
    found = {
        (*rank, span): facts
        for span in {entry.span for entry in manifest.entries}
        for rank, facts in _facts(
            [entry for entry in manifest.entries if entry.span == span], manifest, folder
        ).items()
    }
    return replace(
        manifest,
        entries=[replace(entry, facts=found[in_order(entry)]) for entry in manifest.entries],
    )


def _facts(
    entries: list[RankEntry], manifest: Manifest, folder: StoreFolder
) -> dict[tuple[str, int], Facts]:
    """Read the facts of the entries of one span from their files."""
    files = stored_files(replace(manifest, entries=entries), folder)
    with viewed(files, folder, DESCRIBING) as con:
        for table in DESCRIBING:
            con.table(f"stored.{table}").create_view(f"described_{table}")
        return dict(facts_of(con))


def scope_rows(files: StoredFiles) -> dict[str, list[list[Any]]]:
    """Return the rows of the scope tables: facts of each rank, and tags of each run."""
    return {"rank_scope": _rank_rows(files), "run_tags": _tag_rows(files.manifest)}


def _tag_rows(manifest: Manifest) -> list[list[Any]]:
    """List the tags of existing runs."""
    runs = set(manifest.runs())
    return [
        [run, *tag] for run, tags in manifest.tags.items() if run in runs for tag in tags.items()
    ]


def _rank_rows(files: StoredFiles) -> list[list[Any]]:
    """Build the rank_scope rows.

    Timestamps of a trace without a base time may count from machine boot. Such ranks get a separate
    time origin; otherwise they would be placed half a century before the other ranks.
    """
    starts: dict[tuple[str, bool], int] = {}
    steps: dict[tuple[str, int], set[str]] = {}
    for entry in files.manifest.entries:
        if entry.start_ns is not None:
            clock = (entry.run, is_unix_time(entry.start_ns))
            starts[clock] = min(starts.get(clock, entry.start_ns), entry.start_ns)
        steps.setdefault((entry.run, entry.span), set()).update(entry.step_names)
    sizes = rank_sizes(files.manifest.entries)
    return [
        _row(files, entry, starts, steps, sizes[in_order(entry)])
        for entry in files.manifest.entries
    ]


def rank_sizes(entries: Iterable[RankEntry]) -> dict[tuple[str, int, int], int]:
    """Return the size of the files of each entry [bytes]; shared files are split by row count.

    The sizes add up to the total size of all files.
    """
    claims: dict[str, list[tuple[tuple[str, int, int], Facts]]] = {}
    sizes: dict[tuple[str, int, int], int] = {}
    for entry in entries:
        sizes[in_order(entry)] = 0
        for file in entry.files.values():
            claims.setdefault(file["path"], []).append((in_order(entry), file))
    for files in claims.values():
        total, rows = sum(file["rows"] for _, file in files), 0
        for of, file in files:
            before = file["bytes"] * rows // max(total, 1)
            rows += file["rows"]
            sizes[of] += file["bytes"] * rows // max(total, 1) - before
    return sizes


def _row(
    files: StoredFiles,
    entry: RankEntry,
    starts: Mapping[tuple[str, bool], int],
    steps: Mapping[tuple[str, int], set[str]],
    size_bytes: int,
) -> list[Any]:
    """Build the rank_scope row of a rank, in column order."""
    known: Facts = {
        **entry.facts,
        "run": entry.run,
        "rank": entry.rank,
        "span": entry.span,
        "offset_ns": 0,
        "drops_last_step": False,
        "missing_columns": ", ".join(files.missing(entry)) or None,
        "definitions_changed": entry.options.get("definitions") != definitions(),
        "start_ns": entry.start_ns,
        "ingested_ns": entry.ingested_ns,
        "event_count": entry.event_count,
        "step_count": len(steps[entry.run, entry.span]),
        "size_bytes": size_bytes,
    }
    if entry.start_ns is not None:
        unix = is_unix_time(entry.start_ns)
        known["offset_ns"] = entry.start_ns - starts[entry.run, unix]
        known["drops_last_step"] = len(steps[entry.run, entry.span]) >= 2
    return [known.get(column) for column in RANK_SCOPE]
