"""Exports redacted stores and traces."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hta_sql.errors import ParameterError, RankError, StoreError
from hta_sql.exports.exports import Exported, Selection, export
from hta_sql.exports.redaction.names import Redactor
from hta_sql.exports.redaction.stores import redact_store
from hta_sql.exports.redaction.traces import redact_trace
from hta_sql.ingestion.discover import discover
from hta_sql.machine import temporary_folder
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.manifest import MANIFEST, read_manifest
from hta_sql.store.disk.spans import ARTIFACTS
from hta_sql.store.query.trace_store import TraceStore
from hta_sql.text import first_of
from hta_sql.traces.writing import replacing_in

log = logging.getLogger(__name__)

NAMED = 3
"""Maximum number of files in a warning."""

TRACE = "trace"
"""Name of the format that writes the trace of each rank."""


@dataclass(frozen=True)
class _Trace:
    run: str | None
    rank: int
    capture: int
    path: str


def export_redacted(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    format_name: str,
    redact: Redactor,
    selection: Selection | None = None,
) -> list[Exported]:
    """Write a redacted export of a store or of traces.

    Names known to be public are kept, all others are hashed. Numbers are kept, so that each
    analysis has the same values.

    Args:
        source: A store; for the format ``trace`` also a trace or a folder of traces.
        target: As in :func:`hta_sql.exports.exports.export`. For ``trace``, a folder; for a single
            trace also a file that ends in ``.json`` or ``.json.gz``.
        format_name: ``trace``, or a format of ``export``.
        redact: Replaces names, and records what was replaced.
        selection: Content of the export; its runs are named as in the source.

    Raises:
        ParameterError: Names were given for ``trace``, or the format is unknown.
        RankError: A requested run or rank does not exist.
        StoreError: The target is a file instead of a folder (or vice versa), or exists already.
        TraceError: A trace is missing, or the result cannot be written.
    """
    selection = selection or Selection()
    if format_name == TRACE:
        if selection.names:
            raise ParameterError(
                "The trace format always exports all events of a rank; do not pass analysis or table names."
            )
        return _write_traces(_traces(source, selection), Path(target), redact)
    with TraceStore(source) as opened:
        opened.check_scope({"runs": selection.runs, "ranks": selection.ranks})
    with temporary_folder() as temporary:
        copy = Path(temporary, "redacted.store")
        redact_store(store_folder(source), copy, redact, selection.runs)
        # Without user analyses, because their text would be in the file.
        with TraceStore(copy, analyses=()) as opened:
            return export(opened, target, format_name, replace(selection, runs=()))


def preview(
    source: str | os.PathLike[str],
    format_name: str,
    redact: Redactor,
    selection: Selection | None = None,
) -> None:
    """Record in ``redact`` which names :func:`export_redacted` would keep and replace."""
    selection = selection or Selection()
    with temporary_folder() as temporary:
        if format_name == TRACE:
            _write_traces(_traces(source, selection), Path(temporary), redact)
        else:
            copy = Path(temporary, "redacted.store")
            redact_store(store_folder(source), copy, redact, selection.runs)


def _traces(source: str | os.PathLike[str], selection: Selection) -> list[_Trace]:
    if (Path(source) / MANIFEST).exists():
        entries = read_manifest(source).entries
        others = [entry.path for entry in entries if entry.span in ARTIFACTS]
        found = [
            _Trace(entry.run, entry.rank, entry.span, entry.path)
            for entry in entries
            if entry.span not in ARTIFACTS
        ]
    else:
        files = discover(os.fspath(source), one_job=True)
        others = [file.path for file in files if file.kind != "trace"]
        found = [
            _Trace(None, file.rank, file.capture, file.path)
            for file in files
            if file.kind == "trace"
        ]
    if others:
        log.warning(
            "Left out, because only traces can be written redacted: %s. The format duckdb has the "
            "tables of all files, redacted.",
            first_of(others, NAMED),
        )
    wanted = [
        trace
        for trace in found
        if (not selection.runs or trace.run in selection.runs)
        and (not selection.ranks or trace.rank in selection.ranks)
    ]
    if not wanted:
        raise RankError(
            f"{os.fspath(source)!r} contains no traces for the selected runs and ranks."
        )
    return wanted


def _write_traces(traces: list[_Trace], target: Path, redact: Redactor) -> list[Exported]:
    is_file = target.name.endswith((".json", ".json.gz"))
    if is_file and len(traces) > 1:
        raise ParameterError(
            f"{len(traces)} traces are written to a folder, but {str(target)!r} is a file name."
        )
    if not is_file and target.is_file():
        raise StoreError(f"{str(target)!r} is a file; traces are written to a folder.")
    if is_file:
        return [_written(traces[0], target, target.name, redact)]
    with replacing_in(target) as partial:
        return [
            _written(trace, partial / name, name, redact)
            for trace, name in zip(traces, _names(traces, redact), strict=True)
        ]


def _written(trace: _Trace, path: Path, name: str, redact: Redactor) -> Exported:
    done = redact_trace(trace.path, path, redact)
    return Exported(name, done.events - done.lost_count)


def _names(traces: Iterable[_Trace], redact: Redactor) -> Iterator[str]:
    for trace in traces:
        capture = f"-capture{trace.capture + 1}" if trace.capture else ""
        run = f"{redact('run', trace.run)}/" if trace.run else ""
        yield f"{run}rank{trace.rank}{capture}.json.gz"
