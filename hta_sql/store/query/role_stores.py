"""Opens the ranks with some roles as a separate store, as if only their traces had been ingested.

Steps, collectives and time ranges that ranks have in common then refer only to these ranks. By
contrast, the parameter ``ranks`` only selects rows: ranks are still compared with other roles.
"""

from __future__ import annotations

import shutil
import threading
import weakref
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hta_sql.errors import RankError, StoreError
from hta_sql.library.sql_files import query_sql
from hta_sql.machine import temporary_folder
from hta_sql.store.catalog.build import manifest_of
from hta_sql.store.disk.folder import RemoteFolder, StoreFolder, store_folder
from hta_sql.store.disk.manifest import MANIFEST, Manifest, file_paths, manifest_content

if TYPE_CHECKING:
    from hta_sql.results.result import Result
    from hta_sql.store.query.connection import Connection

Answer = TypeVar("Answer")
Store = TypeVar("Store", bound="ByRole")

_LOCK = threading.Lock()

Rank = tuple[str, int]
"""Run and rank."""


def _with_role(store: Any, ranks: Iterable[int], roles: Iterable[str]) -> list[int]:
    there = store.ranks()
    if found := [rank for rank in ranks if rank in there]:
        return found
    named = roles if isinstance(roles, str) else ", ".join(sorted(roles))
    raise RankError(f"None of the requested ranks has the role {named}.")


class ByRole:
    """Mixin that opens the ranks of some roles as separate stores, which close with this store."""

    _connection: Connection
    _folder: StoreFolder
    _options: dict[str, Any]

    if TYPE_CHECKING:

        def sql(self, query: str) -> Result: ...  # noqa: D102

    def of_roles(self: Store, roles: Iterable[str] | None) -> Store:  # noqa: PYI019 - Self needs Python 3.11
        """Open the ranks with these roles as a separate store.

        It returns the same answers as a store into which only the traces of these ranks were
        ingested. It is closed with this store.

        Args:
            roles: Roles, as in the column ``role`` of ``ranks``; None for this store itself.

        Raises:
            RankError: No rank has one of the roles.
            StoreError: The store is at a URL and was opened with ``safe=True``.
        """
        if roles is None:
            return self
        wanted = frozenset([roles] if isinstance(roles, str) else roles)
        ranks = _ranks_with(wanted, self.sql(query_sql("runs", "roles")).rows())
        with _LOCK:
            known: dict[frozenset[str], Store] = self.__dict__.setdefault("_by_role", {})
            if wanted not in known:
                known[wanted] = self._opened_part(ranks)
            return known[wanted]

    def _part(
        self,
        method: Callable[..., Answer],
        *args: Any,
        roles: Iterable[str] | None,
        **parameters: Any,
    ) -> Answer:
        """Run an analysis on the part of this store with some roles; None for all of it."""
        store = self.of_roles(roles)
        if roles is not None:
            # Workers of an executor can only open the whole store.
            parameters.pop("executor", None)
            if ranks := parameters.get("ranks"):
                parameters["ranks"] = _with_role(store, ranks, roles)
        return method(store, *args, **parameters)

    def _opened_part(self: Store, ranks: Collection[Rank]) -> Store:  # noqa: PYI019 - as above
        opens: Any = type(self)
        manifest = self._connection.run(lambda con: manifest_of(con, self._folder))
        entries = [entry for entry in manifest.entries if (entry.run, entry.rank) in ranks]
        part = replace(manifest, entries=entries, materialized=[], published={})
        if not self._folder.local:
            if self._options["safe"]:
                raise StoreError(
                    f"Roles cannot be selected in {self._folder.root!r} with safe=True, because "
                    "the store is at a URL."
                )
            part_store: Store = opens(_PartOfRemote(self._folder.root, part), **self._options)
            return part_store
        temporary = temporary_folder()
        _link(self._folder.local, Path(temporary.name), part, symbolic=not self._options["safe"])
        store: Store = opens(temporary.name, **self._options)
        weakref.finalize(store, temporary.cleanup)
        return store

    def _close_roles(self) -> None:
        for store in self.__dict__.pop("_by_role", {}).values():
            store.close()


def _hard_link(source: Path, link: Path) -> None:
    """Hard-link a file, or copy it if it is on a different file system.

    A symbolic link would not work: the engine of a safe store resolves links before it checks that
    a file is inside the store.
    """
    try:
        link.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, link)


def _link(local: Path, target: Path, manifest: Manifest, *, symbolic: bool) -> None:
    """Create a store that consists of a manifest and links to its files.

    The new store is writable, so its derived tables are materialized once, away from the full store.
    """
    for path in file_paths(manifest.entries):
        link = target / path
        link.parent.mkdir(parents=True, exist_ok=True)
        if symbolic:
            link.symlink_to(local / path)
        else:
            _hard_link(local / path, link)
    store_folder(target).replace(MANIFEST, manifest_content(manifest))


class _PartOfRemote(RemoteFolder):
    """A part of a store at a URL, defined by a different manifest."""

    def __init__(self, url: str, manifest: Manifest) -> None:
        super().__init__(url)
        self._manifest = manifest_content(manifest)

    def __fspath__(self) -> str:
        return self.root

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return self._manifest if name == MANIFEST else super().read(name)


def _ranks_with(roles: Collection[str], rows: list[tuple[Any, ...]]) -> set[Rank]:
    """Return run and rank of the rows (run, rank, role) with a requested role; raise if it is unknown."""
    known = sorted({role for _, _, role in rows if role})
    for role in sorted(roles):
        if role not in known:
            there = f"available roles: {', '.join(known)}" if known else "no rank has a role"
            raise RankError(f"No role {role!r}; {there}.")
    return {(run, rank) for run, rank, role in rows if role in roles}
