"""Change the library in every small way and see that a test finds it: ``make mutants``.

``python -m tests.mutants.run [FILE ...]``: files below sql/, or parts of their names; without any, all
analyses, macros and tables. Prints who is not found and is not listed in accepted.csv, and lines
of accepted.csv that are not needed any more.
"""

from __future__ import annotations

import csv
import logging
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hta_sql.library.files import sql_root
from hta_sql.machine import cpu_count
from tests.golden_cases import all_cases
from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.places import kept_store
from tests.mutants.workers import judge_all

if TYPE_CHECKING:
    from collections.abc import Iterable

ACCEPTED = Path(__file__).with_name("accepted.csv")
ANYTHING = "…"
FOLDERS = ("analyses/*", "lib", "tables")

log = logging.getLogger("mutants")


def chosen_files(wanted: Iterable[str]) -> list[Path]:
    """Files of the library whose path has one of some texts in it; all of them without any."""
    paths = sorted(path for part in FOLDERS for path in sql_root().glob(f"{part}/*.sql"))
    parts = list(wanted)
    return [p for p in paths if not parts or any(part in str(p) for part in parts)]


def file_of(path: Path) -> str:
    """Name a file as accepted.csv does: its path below sql/."""
    return path.relative_to(sql_root()).as_posix()


@dataclass(frozen=True)
class Accepted:
    """Mutants that nobody can find, or need not, and why.

    ``…`` in a mutation is any text; what stands instead (``-> new]]``) is always written out.
    """

    file: str
    mutation: str
    reason: str

    def covers(self, mutant: Mutant) -> bool:
        """Whether a mutant is one of them."""
        pattern = ".*".join(map(re.escape, self.mutation.split(ANYTHING)))
        return self.file == mutant.file and bool(re.fullmatch(pattern, mutant.mutation))


def accepted() -> list[Accepted]:
    """Read the list."""
    with ACCEPTED.open(encoding="utf-8", newline="") as file:
        return [Accepted(**line) for line in csv.DictReader(file)]


def main(wanted: list[str]) -> int:
    """Judge the mutants of some files; returns the exit code."""
    began = time.monotonic()
    for traces in sorted({case.traces for case in all_cases()} | {f"job {n}" for n in range(3)}):
        kept_store(traces)
    paths = chosen_files(wanted)
    mutants = [m for p in paths for m in mutants_of(file_of(p), p.read_text(encoding="utf-8"))]
    log.info("%d mutants of %d files", len(mutants), len(paths))
    lives: list[Mutant] = []
    refused = 0
    for number, (mutant, who) in enumerate(judge_all(mutants, cpu_count()), 1):
        refused += who.startswith("refused")
        if not who:
            lives.append(mutant)
        log.debug("%s:%d %s: %s", mutant.file, mutant.line, mutant.mutation, who or "LIVES")
        if number % 200 == 0:
            log.info("%d judged, %d live, %.0f s", number, len(lives), time.monotonic() - began)
    files = {file_of(path) for path in paths}
    known = [line for line in accepted() if line.file in files]
    new = [mutant for mutant in lives if not any(line.covers(mutant) for line in known)]
    stale = [line for line in known if not any(line.covers(mutant) for mutant in lives)]
    for mutant in sorted(new, key=lambda m: (m.file, m.line)):
        log.warning("sql/%s:%d: %s", mutant.file, mutant.line, mutant.mutation)
    for line in stale:
        log.warning("accepted.csv: not needed any more: %s: %s", line.file, line.mutation)
    seconds = time.monotonic() - began
    log.info("%d mutants, %d refused by the engine, %d accepted, %d live, %.0f s",
        len(mutants), refused, len(lives) - len(new), len(new), seconds)  # fmt: skip
    return 1 if new or stale else 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    verbose = "-v" in arguments
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    log.setLevel(logging.DEBUG if verbose else logging.INFO)
    sys.exit(main([argument for argument in arguments if argument != "-v"]))
