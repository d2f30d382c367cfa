"""The views of derived tables and of answers: they read what is kept and compute the rest.

With the same rows, and answers in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable

from hta_sql.library import sqltext
from hta_sql.library.answers import answers, columns_of, order_of
from hta_sql.library.creation import KEPT_ANSWERS
from hta_sql.library.files import Columns
from hta_sql.library.objects import Library, SqlObject
from hta_sql.store.columns import Part
from hta_sql.store.kept import kept_tables
from hta_sql.store.manifest import KeptTable, Manifest


def kept_columns(library: Library) -> Columns:
    """Name the columns of all that can be kept."""
    of_answers = {name: columns_of(about) for name, about in answers(library).items()}
    return library.derived_columns() | of_answers


def kept_parts(manifest: Manifest, library: Library) -> list[Part]:
    """List the files of what is kept, those of one table together."""
    columns = kept_columns(library)
    paths: dict[str, list[str]] = {}
    for one in kept_tables(manifest, library).values():
        paths.setdefault(one.table, []).extend([one.path] if one.path else [])
    return [Part(columns[name], paths[name]) for name in paths]


def kept_views(manifest: Manifest, library: Library, place: str) -> list[str]:
    """Build the statements that define the views of what a store keeps some of.

    Args:
        manifest: What is in the store.
        library: Tables, macros and analyses.
        place: What to put before the paths of the files: that of the store, and a slash.
    """
    kept: dict[str, list[KeptTable]] = {}
    for one in kept_tables(manifest, library).values():
        if not one.is_left_out:
            kept.setdefault(one.table, []).append(one)
    runs = manifest.runs()
    abouts = (*library.derived, *answers(library).values())
    views = [
        kept_view(library, about, kept[about.base_name], place, runs)
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


def kept_view(
    library: Library, about: SqlObject, kept: Iterable[KeptTable], place: str, runs: Iterable[str]
) -> str:
    """Build the view of one of which something is kept.

    Args:
        library: Tables, macros and analyses.
        about: What computes it.
        kept: What is kept of it.
        place: What to put before the paths of the files.
        runs: The runs of the store.
    """
    name, columns = about.base_name, kept_columns(library)[about.base_name]
    own = {one.run: one for one in kept}
    paths = [place + path for run in sorted(own) if (path := own[run].path)]
    missing = [run for run in runs if run not in own]
    is_derived = about in library.derived
    if not paths and not missing:
        view = f"{'derived' if is_derived else 'kept'}.{sqltext.identifier(name)}"
        return sqltext.values_view(view, columns, [])
    if is_derived:
        return sqltext.derived_view(name, columns, paths, about.name, missing)
    return sqltext.answer_view(name, columns, paths, about.name, missing, order=order_of(about))
