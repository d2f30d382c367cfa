"""Numbers the captures of each rank: if a rank has several files, each is a separate run."""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from dataclasses import replace

from hta_sql.ingestion.trace_file import TraceFile
from hta_sql.store.disk.run_names import is_unix_time
from hta_sql.text import rank_spans

log = logging.getLogger(__name__)

TIMED_NAME = re.compile(r"^(.+)\.\d{13,19}\.pt\.trace\.json")
"""File names of torch's trace handler: the worker name, then the time in ms or ns."""


def number_captures(found: list[TraceFile], *, join_spans: bool = False) -> list[TraceFile]:
    """Number the captures of each rank; captures of all ranks with the same number belong together.

    Files are sorted by time, or by name (step5 before step11) if they do not state a time.
    """
    by_rank: dict[int, list[TraceFile]] = defaultdict(list)
    for file in sorted(found, key=lambda file: (file.start_ns, _natural(file.path), file.path)):
        by_rank[file.rank].append(file)
    longest = max(by_rank.values(), key=len, default=[])
    starts = [file.start_ns for file in longest]
    numbered = [
        replace(file, capture=number)
        for files in by_rank.values()
        for number, file in zip(
            _captures([file.start_ns for file in files], starts), files, strict=True
        )
    ]
    if len(longest) > 1 and not join_spans:
        _warn_of_captures(by_rank)
    return sorted(numbered, key=lambda file: (file.capture, file.rank))


def _natural(path: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers in names by value."""
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", path)]


def number_dumps(found: list[TraceFile]) -> list[TraceFile]:
    """Number the dumps of each rank, or of each folder if ranks have different numbers of dumps.

    Dumps state no time. If the numbers of dumps differ, the n-th dumps of the ranks may come from
    jobs with different numbers of ranks.
    """
    counts = Counter(file.rank for file in found)
    folders = sorted({folder_of(file.path) for file in found})
    per_folder = Counter((folder_of(file.path), file.rank) for file in found)
    if len(set(counts.values())) < 2 or len(folders) < 2 or max(per_folder.values()) > 1:
        return number_captures(found)
    numbered = [replace(file, capture=folders.index(folder_of(file.path))) for file in found]
    log.warning(
        "Ranks have different numbers of dumps, so the dumps of each folder become a separate run "
        "(NAME, NAME-capture2, ...): %s. If each folder holds one role of the same job, pass "
        "--role ROLE=FOLDER.",
        ", ".join(folders),
    )
    return sorted(numbered, key=lambda file: (file.capture, file.rank))


def _captures(starts: list[int], of_longest: list[int]) -> list[int]:
    """Return the capture number of each file of a rank that may have fewer files than other ranks.

    Each file gets the capture with the nearest start. If clocks cannot be compared, or two files
    would get the same capture, the files are numbered from 0.

    Args:
        starts: Starts of the files of the rank [ns], ascending.
        of_longest: Starts of the files of the rank with the most files [ns].
    """
    in_order = list(range(len(starts)))
    if len(starts) == len(of_longest) or not all(map(is_unix_time, (*starts, *of_longest))):
        return in_order
    nearest = []
    for start in starts:
        distances = [abs(other - start) for other in of_longest]
        nearest.append(distances.index(min(distances)))
    return nearest if len(set(nearest)) == len(nearest) else in_order


def _warn_of_captures(by_rank: dict[int, list[TraceFile]]) -> None:
    """Log one warning for all ranks with several files, which become several runs."""
    several = {rank: files for rank, files in by_rank.items() if len(files) > 1}
    rank, files = min(several.items())
    others = sorted(several)[1:]
    do = "do ranks" if len(others) > 1 else "does rank"
    more = f" (and so {do} {rank_spans(others)})" if others else ""
    timed = (
        " (a separate capture, such as a span of torch.profiler.schedule(repeat=2); --join-spans "
        "joins the files into one run)"
    )
    is_timed = any(file.start_ns for file in files)
    log.warning(
        "Rank %d has %d files%s. Each becomes a separate run%s, named NAME, NAME-capture2, ... in order "
        "of %s: %s.",
        rank,
        len(files),
        more,
        timed if is_timed else "",
        "time" if is_timed else "file name",
        ", ".join(distinct_names([file.path for file in files])),
    )
    if any(len({folder_of(file.path) for file in files}) > 1 for files in several.values()):
        log.warning(
            "Files of one rank are in several folders. If each folder is a separate job, ingest "
            "each folder as a separate run: hta-sql ingest FOLDER --run NAME -o STORE.",
        )


def folder_of(path: str) -> str:
    """Return the folder of a path or URL."""
    return path.rpartition("/")[0]


def process_of(path: str) -> str | None:
    """Return the worker from a file name of torch's trace handler; None for other file names."""
    timed = TIMED_NAME.match(path.rpartition("/")[2])
    return timed.group(1) if timed else None


def distinct_names(paths: list[str]) -> list[str]:
    """Return the paths without the leading folders that all of them have in common."""
    folders = [folder_of(path).split("/") for path in paths]
    common = 0
    for parts in zip(*folders, strict=False):
        if len(set(parts)) > 1:
            break
        common += 1
    return ["/".join(path.split("/")[common:]) for path in paths]
