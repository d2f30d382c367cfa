"""``hta-sql list``: lists the analyses, or the content of a store."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import click

from hta_sql.cli.options import STORE, Output, analyses_option, output_options
from hta_sql.cli.terminal import Heading, show
from hta_sql.library.objects import SqlObject
from hta_sql.library.user_analyses import library_with
from hta_sql.store.disk.manifest import RankEntry
from hta_sql.store.disk.run_names import first_capture
from hta_sql.text import first_of, printable, rank_spans

FILES = 3
"""Maximum number of file names in the line about a run."""


@click.command("list", short_help="List the analyses, or what is in a store.")
@click.argument("store", type=STORE, required=False)
@analyses_option
@output_options
def list_(
    *,
    store: Path | None,
    analyses: tuple[Path, ...] | None,
    out: Output,
) -> None:
    """List the analyses by topic; with a STORE, also its runs and ranks.

    The formats for programs contain one table: the ranks if a STORE is given, otherwise the
    analyses.
    """
    from hta_sql.store.disk.manifest import read_manifest  # noqa: PLC0415 - lazy, to start faster

    library = library_with(analyses)
    entries = read_manifest(store).entries if store else []
    if out.format_name in (None, "table") and not (out.path or out.columns):
        show((*_run_lines(entries), *_analysis_lines(library.newest())))
        return
    import pyarrow as pa  # noqa: PLC0415

    from hta_sql.cli.output import send  # noqa: PLC0415
    from hta_sql.results.display import TableRows  # noqa: PLC0415

    rows = [_rank_row(e) for e in entries] if store else [_row(a) for a in library.analyses]
    send(TableRows(pa.Table.from_pylist(rows)), out)


def _run_lines(entries: list[RankEntry]) -> Iterator[str]:
    runs: dict[str, list[RankEntry]] = {}
    for entry in entries:
        runs.setdefault(entry.run, []).append(entry)
    if runs:
        yield Heading("runs")
    width = max(map(len, runs), default=0)
    for run, members in runs.items():
        events = sum(member.event_count for member in members)
        steps = {step for member in members for step in member.step_names}
        ranks = rank_spans((member.rank for member in members), ",")
        # Runs of the same ranks are distinguished by their files.
        files = f"; {_file_names(members)}" if _is_capture(run, runs) else ""
        yield f"  {run:<{width}}  ranks {ranks}; {len(steps)} profiler steps; {events:,} events{files}"
    if runs:
        yield ""


def _is_capture(run: str, runs: Collection[str]) -> bool:
    """Return whether another run is a capture of the same ranks."""
    return any(run != other and first_capture(other) == first_capture(run) for other in runs)


def _file_names(members: list[RankEntry]) -> str:
    return first_of([printable(member.source.rpartition("/")[2]) for member in members], FILES)


def _analysis_lines(analyses: list[SqlObject]) -> Iterator[str]:
    width = max((len(analysis.name) for analysis in analyses), default=0)
    for topic in sorted({analysis.topic for analysis in analyses}):
        yield Heading(topic)
        for analysis in analyses:
            if analysis.topic == topic:
                mark = "" if analysis.status == "stable" else f" ({analysis.status})"
                yield f"  {analysis.name:<{width}}  {analysis.title}{mark}"
        yield ""
    yield "More about one: hta-sql describe NAME. Run it: hta-sql run STORE NAME."


def _row(analysis: SqlObject) -> dict[str, Any]:
    return {
        "topic": analysis.topic,
        "name": analysis.base_name,
        "version": analysis.version,
        "status": analysis.status,
        "title": analysis.title,
        "summary": analysis.summary,
        "needs": analysis.facts.get("Needs"),
        "reference": analysis.facts.get("Reference"),
    }


def _rank_row(entry: RankEntry) -> dict[str, Any]:
    return {
        "run": entry.run,
        "rank": entry.rank,
        "source": printable(entry.source),
        "rank_source": entry.rank_source,
        "event_count": entry.event_count,
        "quarantined_count": entry.quarantined,
        "step_count": len(entry.step_names),
    }
