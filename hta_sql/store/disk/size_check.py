"""Compares the sizes of a store's files with the manifest while the engine is busy.

File names are never reused, so a file whose size differs from the manifest was truncated or
changed. Missing files are reported by the query that reads them, because another process may have
removed them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection
from typing import Any

from hta_sql.errors import HtaSqlError
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.manifest import manifest_bytes


class SizeCheck:
    """Checks file sizes in a background thread: 20,000 files take 0.1 s.

    A store at a URL is not checked. Object storage never exposes partial objects, and each check
    would cost a request.

    Args:
        folder: The store.
        lost: Runs that are already excluded.
        broken: Files of derived tables that are already excluded.
    """

    def __init__(
        self, folder: StoreFolder, lost: Collection[str] = (), broken: Collection[str] = ()
    ) -> None:
        self._folder, self._without = folder, (lost, broken)
        self._wrong: set[str] = set()
        self._manifest: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._look, daemon=True)
        if folder.local:
            self._thread.start()

    def wrong(self) -> set[str]:
        """Wait for the check, then return the files whose size differs from the manifest."""
        if self._thread.ident is not None:
            self._thread.join()
        return self._wrong

    def _look(self) -> None:
        lost, broken = self._without
        try:
            # Not validated: validating all values costs more than checking the files.
            self._manifest = manifest = json.loads(manifest_bytes(self._folder))
            named = [
                (file["path"], file["bytes"])
                for entry in manifest["entries"]
                if entry["run"] not in lost
                for file in entry["files"].values()
            ]
            kept = ((one["path"], one.get("bytes")) for one in manifest.get("materialized", ()))
            sizes = dict([*named, *(one for one in kept if all(one) and one[0] not in broken)])
            found = self._folder.sizes(sizes)
        except (OSError, HtaSqlError, ValueError, LookupError, TypeError, AttributeError):
            return  # the query that reads the manifest reports it
        self._wrong = {path for path, size in found.items() if size != sizes[path]}
