"""Materialized derived tables and answers: which are up to date, and the views that read them.

Derived tables need all ranks of a run; answers are the results of analyses with default arguments.
The library's SQL computes both. The rows of one run are stored in one Parquet file, for which the
manifest records a key. The key is a hash of the SQL with its dependencies, the files of the run,
and the catalog's facts about its ranks. A stale file is never used: a rank that is ingested again
has different files, so the key no longer matches. Views read the files, and compute the rows of
runs without a file. Both ways return the same rows, and answers have the same row order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from hta_sql.library import sqltext
from hta_sql.library.answers import answers, columns_of, order_of, sql_digest
from hta_sql.library.creation import KEPT_ANSWERS
from hta_sql.library.definitions import definitions
from hta_sql.library.file_groups import FileGroup
from hta_sql.library.objects import Library, SqlObject
from hta_sql.library.sql_files import Columns, columns_digest
from hta_sql.store.disk.manifest import Manifest, MaterializedTable, RankEntry, digest_of

ON_REQUEST = frozenset({"replays"})
"""Slow, rarely read derived tables: computed only if a query reads them, or by `materialize`."""

Missing = list[tuple[SqlObject, list[str]]]
"""Objects to compute, each with its runs."""


def keys_of(
    manifest: Manifest, library: Library, names: Collection[str] | None = None
) -> dict[tuple[str, str], str]:
    """Return the keys of derived tables and answers: (name, run) ─▶ key.

    Args:
        manifest: Manifest of the store.
        library: Tables, macros and analyses.
        names: Tables and answers to include; unknown names are ignored. None: all derived tables.
    """
    ranks: dict[str, list[RankEntry]] = defaultdict(list)
    for entry in manifest.entries:
        ranks[entry.run].append(entry)
    runs = {run: digest_of(repr(sorted(map(_known_of, ranks[run]))).encode()) for run in ranks}
    known = {about.base_name: about for about in library.derived}
    if names is not None:
        known = {name: about for name, about in (known | answers(library)).items() if name in names}
    digests = {name: sql_digest(library, about) for name, about in known.items()}
    return {
        (name, run): digest_of(f"{sql} {columns_digest()} {digest}".encode())
        for name, sql in digests.items()
        for run, digest in runs.items()
    }


def _known_of(entry: RankEntry) -> tuple[object, ...]:
    """Return the inputs of a rank's derived rows: its files, and its row in rank_scope."""
    files = sorted(file["path"] for file in entry.files.values())
    changed = entry.options.get("definitions") != definitions()
    return entry.rank, entry.span, files, entry.start_ns, entry.step_names, entry.schema, changed


def kept_tables(
    manifest: Manifest, library: Library, names: Collection[str] | None = None
) -> dict[tuple[str, str], MaterializedTable]:
    """Return the up-to-date tables, including tables found too large: (name, run) ─▶ table.

    Args:
        manifest: Manifest of the store.
        library: Tables, macros and analyses.
        names: Tables and answers to include; None: all.
    """
    tables = {
        (kept.table, kept.run): kept
        for kept in manifest.materialized
        if names is None or kept.table in names
    }
    keys = keys_of(manifest, library, {name for name, _ in tables})
    return {at: kept for at, kept in tables.items() if kept.key == keys.get(at)}


def missing_tables(
    manifest: Manifest,
    library: Library,
    runs: Collection[str] | None = None,
    without: Collection[str] = (),
) -> Missing:
    """List the derived tables that are not materialized, in order of computation.

    Args:
        manifest: Manifest of the store.
        library: Tables, macros and analyses.
        runs: Runs to include; None: all.
        without: Names of derived tables to exclude.
    """
    abouts = [about for about in library.derived if about.base_name not in without]
    kept = kept_tables(manifest, library, {about.base_name for about in library.derived})
    return _without(kept, abouts, _wanted(manifest, runs))


def missing_answers(
    manifest: Manifest,
    library: Library,
    runs: Collection[str] | None = None,
    names: Collection[str] = (),
) -> Missing:
    """List the answers that are not materialized.

    Args:
        manifest: Manifest of the store.
        library: Tables, macros and analyses.
        runs: Runs to include; None: all.
        names: Analyses to include regardless of size; if empty, all except those found too large.
    """
    wanted = [about for name, about in answers(library).items() if name in names or not names]
    kept = kept_tables(manifest, library, {about.base_name for about in wanted}).items()
    settled = {at for at, one in kept if not (names and one.is_left_out)}
    return _without(settled, wanted, _wanted(manifest, runs))


def _wanted(manifest: Manifest, runs: Collection[str] | None) -> list[str]:
    return [run for run in manifest.runs() if runs is None or run in runs]


def _without(
    settled: Collection[tuple[str, str]], abouts: Iterable[SqlObject], runs: list[str]
) -> Missing:
    missing = (
        (about, [run for run in runs if (about.base_name, run) not in settled]) for about in abouts
    )
    return [(about, runs) for about, runs in missing if runs]


def kept_columns(library: Library) -> Columns:
    """Return the columns of all tables and answers that can be materialized."""
    of_answers = {name: columns_of(about) for name, about in answers(library).items()}
    return library.derived_columns() | of_answers


def materialized_files(manifest: Manifest, library: Library) -> list[FileGroup]:
    """Return the materialized files, grouped by table."""
    columns = kept_columns(library)
    paths: dict[str, list[str]] = {}
    for one in kept_tables(manifest, library).values():
        paths.setdefault(one.table, []).extend([one.path] if one.path else [])
    return [FileGroup(columns[name], paths[name]) for name in paths]


def materialized_views(manifest: Manifest, library: Library, place: str) -> list[str]:
    """Build the statements that define the views over materialized files.

    Args:
        manifest: Manifest of the store.
        library: Tables, macros and analyses.
        place: Prefix of the file paths: the store's location and a slash.
    """
    kept: dict[str, list[MaterializedTable]] = {}
    for one in kept_tables(manifest, library).values():
        if not one.is_left_out:
            kept.setdefault(one.table, []).append(one)
    runs = manifest.runs()
    abouts = (*library.derived, *answers(library).values())
    views = [
        materialized_view(library, about, kept[about.base_name], place, runs)
        for about in abouts
        if about.base_name in kept
    ]
    lines = [
        (one.table, one.run, one.rows, one.bytes)
        for name in sorted(answers(library).keys() & kept.keys())
        for one in sorted(kept[name], key=lambda one: one.run)
    ]
    listed = sqltext.replace_view_by_table(
        "stored.kept_answers", sqltext.values(KEPT_ANSWERS, lines)
    )
    return [*views, *listed] if lines else views


def materialized_view(
    library: Library,
    about: SqlObject,
    kept: Iterable[MaterializedTable],
    place: str,
    runs: Iterable[str],
) -> str:
    """Build the view of a derived table or an answer that is materialized for some runs.

    Args:
        library: Tables, macros and analyses.
        about: The derived table or analysis.
        kept: Its materialized files, for some runs.
        place: Prefix of the file paths.
        runs: The runs of the store.
    """
    name, columns = about.base_name, kept_columns(library)[about.base_name]
    own = {one.run: one for one in kept}
    paths = [place + path for run in sorted(own) if (path := own[run].path)]
    missing = [run for run in runs if run not in own]
    is_derived = about in library.derived
    if not paths and not missing:
        view = f"{'derived' if is_derived else 'materialized'}.{sqltext.identifier(name)}"
        return sqltext.values_view(view, columns, [])
    if is_derived:
        return sqltext.derived_view(name, columns, paths, about.name, missing)
    return sqltext.answer_view(name, columns, paths, about.name, missing, order=order_of(about))
