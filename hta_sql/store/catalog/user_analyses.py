"""User analyses that are saved in a store, so that everyone who opens the store can query them.

Their SQL is stored next to the manifest. Every catalog that is built later, on any machine,
contains them.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path

from hta_sql.errors import LibraryError, StoreDamagedError
from hta_sql.library.objects import Library, parse_text
from hta_sql.library.user_analyses import with_user_analyses
from hta_sql.store.catalog.template import template
from hta_sql.store.disk.digests import is_damaged, with_checksum
from hta_sql.store.disk.folder import StoreFolder

log = logging.getLogger(__name__)

OWN = "analyses.json"
"""File name in the store; maps the original path of each file to its text."""


def store_user_analyses(folder: StoreFolder, library: Library) -> None:
    """Replace the user analyses in a store with those that a library adds to the shipped library.

    Call only under the store's lock.
    """
    own = library.user_library
    texts = {str(about.path): about.text for about in (*own.macros, *own.analyses)}
    if not texts:
        with suppress(FileNotFoundError):
            folder.read(OWN)
            folder.remove([OWN])
        return
    folder.replace(OWN, with_checksum({"texts": texts}))


def may_serve(folder: StoreFolder, library: Library) -> bool:
    """Return whether the catalog of a local store may contain all objects of a library."""
    return not library.shipped or bool(folder.local and (folder.local / OWN).exists())


def user_texts(folder: StoreFolder) -> dict[str, str]:
    """Read the SQL of the user analyses in a store, by path.

    Raises:
        FileNotFoundError: The store has no user analyses.
        StoreDamagedError: The file is damaged.
    """
    content = folder.read(OWN)
    try:
        values = json.loads(content)
        texts: dict[str, str] = values["texts"]
        whole = all(isinstance(text, str) for item in texts.items() for text in item)
        is_whole = whole and not is_damaged(content, values)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreDamagedError(_damaged(folder)) from error
    if not is_whole:
        raise StoreDamagedError(_damaged(folder))
    return texts


def _damaged(folder: StoreFolder) -> str:
    return (
        f"{folder.path(OWN)!r} is damaged. Save your own analyses in the store again: "
        f"hta-sql catalog {folder.root} --analyses DIR"
    )


def with_those_of_store(folder: StoreFolder, library: Library) -> Library:
    """Add the user analyses of a store to a library.

    If they no longer fit the library, log a warning and return the library without them.
    """
    try:
        texts = user_texts(folder)
    except FileNotFoundError:
        return library
    try:
        added = with_user_analyses(
            library, [parse_text(Path(path), text) for path, text in texts.items()]
        )
        template(added)
    except LibraryError as error:
        log.warning(
            "%s: the user analyses in this store are ignored: %s Replace them: hta-sql catalog "
            "STORE --analyses DIR",
            folder.root,
            error,
        )
        return library
    return added
