"""Analyses that a team has put into the catalog of a store, so that all who open it find the views.

Their texts stand in the store beside the manifest: every catalog that is built from then on, on
whichever machine, has them as well.
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
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.integrity import is_damaged, with_checksum

log = logging.getLogger(__name__)

OWN = "analyses.json"
"""Path of each file, as it was read ─▶ text."""


def store_user_analyses(folder: StoreFolder, library: Library) -> None:
    """Put what a library adds to the shipped one into a store, in place of what was there.

    Under its lock.
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
    """Whether the catalog of a local store may have all of a library."""
    return not library.shipped or bool(folder.local and (folder.local / OWN).exists())


def user_texts(folder: StoreFolder) -> dict[str, str]:
    """Read the texts that were put into a store.

    Raises:
        FileNotFoundError: There are none.
        StoreDamagedError: They are not what was written.
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
        f"{folder.path(OWN)!r} is damaged. Put the analyses of your own there again: "
        f"hta-sql catalog {folder.root} --analyses DIR"
    )


def with_those_of_store(folder: StoreFolder, library: Library) -> Library:
    """Add what a team has put into a store; without, and with a warning, where that fits no more."""
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
            "%s: left out the analyses that were put into it: %s Put better ones there: "
            "hta-sql catalog STORE --analyses DIR",
            folder.root,
            error,
        )
        return library
    return added
