"""Ingests the traces of quarantined ranks again if they are unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hta_sql.errors import HtaSqlError
from hta_sql.ingestion.fingerprints import fingerprint
from hta_sql.ingestion.ingest import read_and_publish
from hta_sql.ingestion.options import IngestOptions
from hta_sql.ingestion.plan import Work, plan_ingest
from hta_sql.ingestion.trace_file import TraceFile
from hta_sql.store.catalog.ingest_target import Contents, RankWriter
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.manifest import Manifest, RankEntry, read_manifest
from hta_sql.store.disk.spans import ARTIFACTS
from hta_sql.traces.peek import Stated


def read_again(
    folder: StoreFolder, manifest: Manifest
) -> tuple[list[tuple[str, int]], dict[tuple[str, int], str]]:
    """Ingest the traces of quarantined ranks again and publish them.

    Call only under the store's lock.

    Args:
        folder: The store.
        manifest: Manifest of the store, with the quarantined ranks in ``aside``.

    Returns:
        The (run, rank) pairs that were read, and the reason why each of the others was not.
    """
    why: dict[tuple[str, int], str] = {}
    read: list[tuple[str, int]] = []
    for run in sorted(manifest.aside_runs()):
        entries = [entry for entry in manifest.aside if entry.run == run]
        hindrances = {(run, entry.rank): _hindrance(entry) for entry in entries}
        why |= {of: hindrance for of, hindrance in hindrances.items() if hindrance}
        able = [entry for entry in entries if not hindrances[run, entry.rank]]
        files = [_trace_of(entry) for entry in able]
        if not files:
            continue
        # With join_spans, the traces keep their run and their span number.
        plan = plan_ingest(IngestOptions([], folder.root, run=run, join_spans=True))
        writer = RankWriter(plan.target, Contents(read_manifest(folder)))
        done, failures = read_and_publish(plan, Work(files, [run], files), writer)
        read += [(entry.run, entry.rank) for entry in done]
        why |= {
            (run, entry.rank): failure.message
            for failure in failures
            for entry in able
            if entry.path in failure.message
        }
    return read, why


def _trace_of(entry: RankEntry) -> TraceFile:
    """Return the trace of an entry with the facts from its first ingest."""
    role: dict[str, Any] = {
        "role": entry.role,
        "role_source": entry.role_source,
        "first_rank": entry.first_rank,
    }
    if kind := ARTIFACTS.get(entry.span):
        artifact = Stated(entry.rank, 0, kind=kind)
        file = TraceFile(entry.path, entry.rank, entry.rank_source, stated=artifact)
        return replace(file, **role)
    stated = Stated(None, entry.start_ns or 0, process=entry.process, end_ns=entry.end_ns)
    stated = stated._replace(pid=entry.pid)
    file = TraceFile(entry.path, entry.rank, entry.rank_source, capture=entry.span, stated=stated)
    return replace(file, **role)


def _hindrance(entry: RankEntry) -> str | None:
    """Return why a rank cannot be ingested again as before; None if it can."""
    if entry.options.get("kernel_classes"):
        return "it was ingested with your own rules; ingest it again with --kernel-classes"
    if entry.options.get("captures"):
        return "it was ingested with graph captures; ingest it again with --captures"
    try:
        now = fingerprint(entry.path)
    except (OSError, HtaSqlError):
        return f"its trace is missing: {entry.source}"
    if (now.size, now.content) != (entry.fingerprint.size, entry.fingerprint.content):
        return f"its trace has changed since it was ingested: {entry.source}"
    return None
