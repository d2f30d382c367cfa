"""Apply every small change to the library and check that a test fails: ``make mutants``.

``python -m tests.mutants.run [--sample SHARE] [--seed N] [-v] [FILE ...]``: FILE is a file below
sql/, or a part of its name; the default is all analyses, macros, derived tables and tables. A
sample is drawn from all of their mutants. The program prints surviving mutants that accepted.csv
does not list, and obsolete lines of accepted.csv.
"""

from __future__ import annotations

import argparse
import csv
import logging
import math
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from hta_sql.library.sql_files import sql_root
from hta_sql.machine import cpu_count
from tests.golden_cases import all_cases
from tests.mutants.memory import Memory
from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.rows import JOB, PINNED, keep_rows
from tests.mutants.workers import judge_all
from tests.pinned.answers import PLACES

if TYPE_CHECKING:
    from collections.abc import Iterable

ACCEPTED = Path(__file__).with_name("accepted.csv")
ANYTHING = "…"
FOLDERS = ("analyses/*", "derived", "lib/*", "tables")

log = logging.getLogger("mutants")


def chosen_files(wanted: Iterable[str]) -> list[Path]:
    """Return the library files whose path contains one of the given strings, or all files."""
    paths = sorted(path for part in FOLDERS for path in sql_root().glob(f"{part}/*.sql"))
    parts = list(wanted)
    return [p for p in paths if not parts or any(part in str(p) for part in parts)]


def file_of(path: Path) -> str:
    """Return the name of a file in accepted.csv: its path below sql/."""
    return path.relative_to(sql_root()).as_posix()


@dataclass(frozen=True)
class Accepted:
    """Mutants that are allowed to survive, and the reason.

    ``…`` in a mutation is any text; the replacement (``-> new]]``) is always written in full.
    """

    file: str
    mutation: str
    reason: str

    def covers(self, mutant: Mutant) -> bool:
        """Return whether this line covers a mutant."""
        pattern = ".*".join(map(re.escape, self.mutation.split(ANYTHING)))
        return self.file == mutant.file and bool(re.fullmatch(pattern, mutant.mutation))


def accepted() -> list[Accepted]:
    """Read the list of accepted mutants."""
    with ACCEPTED.open(encoding="utf-8", newline="") as file:
        return [Accepted(**line) for line in csv.DictReader(file)]


def share_within(part: int, whole: int) -> tuple[float, float]:
    """Return the 95 % Wilson confidence interval for a proportion observed in a sample."""
    z = 1.96
    middle = (part + z * z / 2) / (whole + z * z)
    width = z * math.sqrt(part * (whole - part) / whole + z * z / 4) / (whole + z * z)
    return max(middle - width, 0.0), min(middle + width, 1.0)


def drawn(mutants: list[Mutant], share: float, seed: int) -> list[Mutant]:
    """Draw a sample in the original order; the same seed draws the same sample."""
    count = round(len(mutants) * share)
    return [mutants[at] for at in sorted(Random(seed).sample(range(len(mutants)), count))]


def main(wanted: list[str], share: float = 1.0, seed: int = 1) -> int:
    """Judge the mutants of the given files, or a sample of them; return the exit code."""
    began = time.monotonic()
    jobs = {f"{JOB}{number}" for number in range(2)}
    pinned = {f"{PINNED}{place}" for place in PLACES}
    keep_rows(sorted({case.traces for case in all_cases()} | jobs | pinned))
    paths = chosen_files(wanted)
    mutants = [m for p in paths for m in mutants_of(file_of(p), p.read_text(encoding="utf-8"))]
    log.info("%d mutants of %d files", len(mutants), len(paths))
    if share < 1:
        mutants = drawn(mutants, share, seed)
        log.info("%d of them drawn by seed %d", len(mutants), seed)
    lives, refused = _judged(mutants)
    files = {file_of(path) for path in paths}
    known = [line for line in accepted() if line.file in files]
    new = [mutant for mutant in lives if not any(line.covers(mutant) for line in known)]
    # A sample may not include the mutants that a line covers.
    stale = [] if share < 1 else [line for line in known if not any(map(line.covers, lives))]
    for mutant in sorted(new, key=lambda m: (m.file, m.line)):
        log.warning("sql/%s:%d: %s", mutant.file, mutant.line, mutant.mutation)
    for line in stale:
        log.warning("accepted.csv: not needed any more: %s: %s", line.file, line.mutation)
    seconds = time.monotonic() - began
    log.info("%d mutants, %d refused by the engine, %d accepted, %d live, %.0f s",
        len(mutants), refused, len(lives) - len(new), len(new), seconds)  # fmt: skip
    if mutants:
        low, high = share_within(len(new), len(mutants))
        log.info("%d found, %d live: %.1f%% (of all of them %.1f%% to %.1f%%)",
            len(mutants) - len(lives), len(new), 100 * len(new) / len(mutants),
            100 * low, 100 * high)  # fmt: skip
    return 1 if new or stale else 0


def _judged(mutants: list[Mutant]) -> tuple[list[Mutant], int]:
    """Return the surviving mutants, and the number that the engine refuses."""
    began = time.monotonic()
    memory = Memory()
    lives: list[Mutant] = []
    refused = 0
    for number, (mutant, verdict) in enumerate(judge_all(mutants, cpu_count(), memory), 1):
        memory.keep(mutant, verdict)
        refused += verdict.who.startswith("refused")
        if not verdict.who:
            lives.append(mutant)
        log.debug("%s:%d %s: %s", mutant.file, mutant.line, mutant.mutation, verdict.who or "LIVES")
        if number % 20 == 0:
            memory.write()
        if number % 200 == 0:
            log.info("%d judged, %d live, %.0f s", number, len(lives), time.monotonic() - began)
    memory.write()
    return lives, refused


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Change sql/ in every small way.")
    parser.add_argument("files", nargs="*", help="parts of the names of files below sql/")
    parser.add_argument("--sample", type=float, default=1.0, help="share of the mutants")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("-v", dest="verbose", action="store_true", help="say who found each")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    log.setLevel(logging.DEBUG if options.verbose else logging.INFO)
    sys.exit(main(options.files, options.sample, options.seed))
