"""Tags of runs: validates tags, and writes them to the manifest."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from hta_sql.errors import ParameterError, RankError, nearest
from hta_sql.store.catalog.build import publish_manifest
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.locks import LOCK_TIMEOUT_S, store_lock
from hta_sql.store.disk.manifest import Manifest, Store, read_manifest

_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,99}")
_VALUE = re.compile(r"[^\x00-\x1f\x7f]{0,1000}")


def checked_tags(tags: Mapping[str, object] | None) -> dict[str, str]:
    """Validate tags, and return them as strings.

    Raises:
        ParameterError: A tag name or value is not valid.
    """
    checked = {str(tag): str(value) for tag, value in (tags or {}).items()}
    for tag, value in checked.items():
        if not _TAG.fullmatch(tag):
            raise ParameterError(
                f"Tag {tag!r}: use letters, digits, '.', '_', '/' and '-', at most 100 characters."
            )
        if not _VALUE.fullmatch(value):
            raise ParameterError(
                f"The value of tag {tag!r} must be a single line of at most 1,000 characters."
            )
    return checked


def tag_runs(
    store: Store,
    runs: Collection[str] | str,
    tags: Mapping[str, object],
    *,
    lock_timeout: float = LOCK_TIMEOUT_S,
) -> None:
    """Add tags to runs of a store.

    Args:
        store: Folder of the store, or its fsspec URL.
        runs: One run or several.
        tags: Tag ─▶ value. Other tags of a run remain; an empty value removes a tag.
        lock_timeout: Time to wait for another process that is writing the store [s].

    Raises:
        ParameterError: A tag name or value is not valid.
        RankError: A run does not exist.
        StoreNotFoundError: There is no store at that path.
        StoreError: The lock was not released within ``lock_timeout``.
    """
    checked = checked_tags(tags)
    runs = [runs] if isinstance(runs, str) else runs
    with changing_runs(store, runs, lock_timeout) as (folder, manifest):
        tagged = manifest.with_tags(runs, checked)
        if tagged != manifest:
            publish_manifest(folder, tagged)


@contextmanager
def changing_runs(
    store: Store, runs: Collection[str], lock_timeout: float
) -> Iterator[tuple[StoreFolder, Manifest]]:
    """Lock a store, check that the runs exist, and yield its folder and manifest."""
    folder = store_folder(store)
    read_manifest(folder)  # raises before the lock creates a folder
    with store_lock(folder, lock_timeout):
        manifest = read_manifest(folder)
        known = manifest.runs()
        for run in runs:
            if run not in known:
                raise RankError(
                    f"No run {run!r} in {folder.root!r}.{nearest(run, known)} "
                    f"hta-sql runs {folder.root} lists the runs."
                )
        yield folder, manifest
