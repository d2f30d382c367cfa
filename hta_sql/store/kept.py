"""What a store keeps beside its tables, and what of that is up to date.

Derived tables need all ranks of a run, answers are what analyses return with their defaults. Either
is computed by SQL of the library, and its rows of one run are one Parquet file, which the manifest
names by a key: a hash of the SQL, of all that it stands on, of the files of the run and of what else
the catalog knows of its ranks. None of these changes, so that what is kept never grows old; a rank
that is read again has other files, and what was computed of the old ones is not found any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from hta_sql.library.answers import answers, sql_digest
from hta_sql.library.definitions import definitions
from hta_sql.library.files import columns_digest
from hta_sql.library.objects import Library, SqlObject
from hta_sql.store.manifest import KeptTable, Manifest, RankEntry, digest_of

Missing = list[tuple[SqlObject, list[str]]]
"""What is to be computed, and its runs."""


def keys_of(
    manifest: Manifest, library: Library, names: Collection[str] | None = None
) -> dict[tuple[str, str], str]:
    """Name what derived tables and answers are computed from: (name, run) ─▶ key.

    Args:
        manifest: What is in the store.
        library: Tables, macros and analyses.
        names: Of which; those that the library has not are left out. None: the derived tables.
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
    """Say all that rows of a rank may hang on: its files, and what makes up its line of rank_scope."""
    files = sorted(file["path"] for file in entry.files.values())
    changed = entry.options.get("definitions") != definitions()
    return entry.rank, entry.span, files, entry.start_ns, entry.step_names, entry.schema, changed


def kept_tables(
    manifest: Manifest, library: Library, names: Collection[str] | None = None
) -> dict[tuple[str, str], KeptTable]:
    """Find what is kept and up to date: (name, run) ─▶ where it is; also what was found too large.

    Args:
        manifest: What is in the store.
        library: Tables, macros and analyses.
        names: Of which; None: of all.
    """
    tables = {
        (kept.table, kept.run): kept
        for kept in manifest.kept
        if names is None or kept.table in names
    }
    keys = keys_of(manifest, library, {name for name, _ in tables})
    return {at: kept for at, kept in tables.items() if kept.key == keys.get(at)}


def missing_tables(
    manifest: Manifest, library: Library, runs: Collection[str] | None = None
) -> Missing:
    """List the derived tables that are not kept, in the order in which to compute them.

    Args:
        manifest: What is in the store.
        library: Tables, macros and analyses.
        runs: Runs to look at; None: all.
    """
    kept = kept_tables(manifest, library, {about.base_name for about in library.derived})
    return _without(kept, library.derived, _wanted(manifest, runs))


def missing_answers(
    manifest: Manifest,
    library: Library,
    runs: Collection[str] | None = None,
    names: Collection[str] = (),
) -> Missing:
    """List the answers that are not kept.

    Args:
        manifest: What is in the store.
        library: Tables, macros and analyses.
        runs: Runs to look at; None: all.
        names: Analyses, also those whose answers are large; none: those that were not found to be.
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
