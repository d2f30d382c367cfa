"""Compares the sizes of a store's files with those that were written, while the engine is busy.

Names are never used twice: a file that has another size than its manifest says is not the one that was
written. One that is gone is found where it is asked for, since others may have removed it meanwhile.
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
    """Looks the files up in a thread of its own: 20,000 of them take 0.1 s.

    An object storage shows no part of an object, and each look there is a request: nothing is done.

    Args:
        folder: The store.
        lost: Runs that are left out already.
        broken: Files of derived tables that are left out already.
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
        """Return the files that have another size; waits until all were looked at."""
        if self._thread.ident is not None:
            self._thread.join()
        return self._wrong

    def _look(self) -> None:
        lost, broken = self._without
        try:
            # As it is: to look at all of its values costs more than to look at the files.
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
            return  # told by whoever asks
        self._wrong = {path for path, size in found.items() if size != sizes[path]}
