"""Verdicts of earlier runs, so that only new or changed tests run.

The folder .hta_sql has a file of verdicts for each file of the library.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.mutants.rows import KEPT
from tests.mutants.uses import digest_of
from tests.mutants.verdicts import Verdict

if TYPE_CHECKING:
    from tests.mutants.mutations import Mutant


class Memory:
    """Verdicts by mutant text, each with the keys of the tests that it depends on."""

    def __init__(self, folder: Path = KEPT / "verdicts") -> None:
        self._folder = folder
        self._files: dict[str, dict[str, Verdict]] = {}
        self._changed: set[str] = set()

    def recall(self, mutant: Mutant) -> Verdict | None:
        """Return the verdict on a mutant, or None if it was not tried."""
        return self._of(mutant.file).get(digest_of(mutant.text))

    def keep(self, mutant: Mutant, verdict: Verdict) -> None:
        """Store the verdict on a mutant."""
        self._of(mutant.file)[digest_of(mutant.text)] = verdict
        self._changed.add(mutant.file)

    def write(self) -> None:
        """Write new verdicts to disk."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for file in self._changed:
            lines = {text: [one.who, *one.keys] for text, one in self._files[file].items()}
            self._path(file).write_text(json.dumps(lines), encoding="utf-8")
        self._changed.clear()

    def _of(self, file: str) -> dict[str, Verdict]:
        if file not in self._files:
            path = self._path(file)
            lines = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            self._files[file] = {
                text: Verdict(who, tuple(keys)) for text, (who, *keys) in lines.items()
            }
        return self._files[file]

    def _path(self, file: str) -> Path:
        return self._folder / f"{file.replace('/', '.')}.json"
