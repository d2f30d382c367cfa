"""Rejects traces of several jobs: detects the jobs, and lists them with their folders."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise

from hta_sql.errors import RankError
from hta_sql.ingestion.captures import distinct_names, folder_of, process_of
from hta_sql.ingestion.trace_file import TraceFile
from hta_sql.store.disk.run_names import default_run_name, is_unix_time
from hta_sql.text import counted, first_of
from hta_sql.traces.peek import Stated

MOST_JOBS = 10
"""Maximum number of jobs in a message."""

MOST_FILES = 3
"""Maximum number of folders or files of a job in a message."""

LARGEST_GAP_NS = 60_000_000_000
"""Maximum gap between recordings of one job [ns]; the clocks of its hosts may differ."""

SHORTEST_PAUSE_NS = 1_000_000_000
"""Minimum gap between two recordings in one folder of which neither can be a rank of the other's job [ns].

Ranks are recorded at the same time; a script that runs twice pauses longer than this to start.
"""

_NUMBERS = re.compile(r"\d+")

BY_ORDER = "order of names"


def check_one_job(found: Sequence[TraceFile]) -> None:
    """Raise if traces cannot come from one job.

    Several captures of one process are one job, and so are several roles, each with its own world
    size. Traces that state nothing are one job unless they were recorded at different times.

    Raises:
        RankError: The traces come from several jobs; the message lists the jobs.
    """
    files = [file for file in found if file.stated and file.rank_source != "given"]
    reasons = list(_reasons(files))
    if not reasons:
        return
    jobs = _jobs(files)
    names = dict(zip((f.path for f in files), distinct_names([f.path for f in files]), strict=True))
    listed = [_job_text(job, names) for job in jobs]
    raise RankError(
        f"The traces come from {len(jobs)} jobs, because {', and '.join(reasons)}: "
        f"{first_of(listed, MOST_JOBS, '; ')}. "
        f"Ingest each job separately: {'; '.join(_commands(jobs))}. "
        "If they are roles of one job, such as prefill and decode servers, give each a role: "
        "--role ROLE=PATH (role={role: path}). If all of them are one job: --one-job (one_job=True)."
    )


def _reasons(files: Sequence[TraceFile]) -> Iterator[str]:
    roles: dict[object, list[TraceFile]] = defaultdict(list)
    for file in files:
        roles[file.role].append(file)
    of_roles = list(roles.values())
    if any(len({s.world_size for s in _stated(of) if s.world_size}) > 1 for of in of_roles):
        yield "they have different world sizes"
    if any(len({s.backend for s in _stated(of) if s.backend}) > 1 for of in of_roles):
        yield "they have different backends"
    pairs = list(_of_one_rank(files))
    if any(_are_two_processes(one, other) for one, other in pairs):
        yield "different processes recorded the same rank"
    elif any(_have_other_groups(one, other) for one, other in pairs):
        yield "traces of the same rank have different process groups"
    telling = {folder_of(f.path) for f in files if f.stated and f.stated.world_size}
    silent = [file for file in files if file.rank_source == BY_ORDER and file.role is None]
    if telling and any(folder_of(file.path) not in telling for file in silent):
        yield "traces in other folders specify neither rank nor world size"
    if _is_apart(silent):
        yield "they were recorded at different times"
    elif _are_in_turn(silent):
        yield "they were recorded one after the other"


def _stated(files: Iterable[TraceFile]) -> list[Stated]:
    return [file.stated for file in files if file.stated]


def _of_one_rank(files: Sequence[TraceFile]) -> Iterator[tuple[TraceFile, TraceFile]]:
    ranks: dict[tuple[object, int], list[TraceFile]] = defaultdict(list)
    for file in files:
        ranks[file.role, file.rank].append(file)
    for of_rank in ranks.values():
        yield from combinations(of_rank, 2)


def _differ(one: TraceFile, other: TraceFile) -> bool:
    """Return whether two files of one rank come from different worlds."""
    return _are_two_processes(one, other) or _have_other_groups(one, other)


def _have_other_groups(one: TraceFile, other: TraceFile) -> bool:
    """Return whether each of two files states a process group that the other does not state.

    A later capture of one process may state more groups than an earlier one.
    """
    if not one.stated or not other.stated:
        return False
    groups = one.stated.groups, other.stated.groups
    return not (groups[0] <= groups[1] or groups[1] <= groups[0])


def _are_two_processes(one: TraceFile, other: TraceFile) -> bool:
    """Return whether two files of one rank are from different processes."""
    processes = process_of(one.path), process_of(other.path)
    if None not in processes:
        return processes[0] != processes[1]
    if one.stated and other.stated and None not in (one.stated.pid, other.stated.pid):
        # Each file of a job with a single process becomes a run, so nothing can be mixed up.
        sizes = one.stated.world_size or 1, other.stated.world_size or 1
        if one.stated.pid != other.stated.pid and max(sizes) > 1:
            return True
    ends = [file.stated.end_ns if file.stated else None for file in (one, other)]
    if folder_of(one.path) == folder_of(other.path) or ends[0] is None or ends[1] is None:
        return False
    # Two copies of a trace start at the same time.
    return one.start_ns != other.start_ns and max(one.start_ns, other.start_ns) < min(
        ends[0], ends[1]
    )


def _is_apart(files: Sequence[TraceFile]) -> bool:
    """Return whether traces in different folders were recorded far apart in time."""
    spans = sorted(
        (file.start_ns, file.stated.end_ns or file.start_ns, folder_of(file.path))
        for file in files
        if file.stated and is_unix_time(file.start_ns)
    )
    return any(
        other[0] - one[1] > LARGEST_GAP_NS and one[2] != other[2] for one, other in pairwise(spans)
    )


def _are_in_turn(files: Sequence[TraceFile]) -> bool:
    """Return whether processes were recorded in turn: the next one began after a pause."""
    folders: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for file in files:
        if file.stated and file.stated.end_ns:
            folders[folder_of(file.path)].append((file.start_ns, file.stated.end_ns, file.rank))
    return any(
        other[0] - one[1] > SHORTEST_PAUSE_NS and one[2] != other[2]
        for spans in folders.values()
        for one, other in pairwise(sorted(spans))
    )


def _commands(jobs: Sequence[Sequence[TraceFile]]) -> Iterator[str]:
    """Yield the command that ingests each job: of its folder, or its files if others are there."""
    owners: dict[str, set[int]] = defaultdict(set)
    for number, job in enumerate(jobs):
        for file in job:
            owners[folder_of(file.path)].add(number)
    for job in jobs[:MOST_JOBS]:
        folders = list(dict.fromkeys(folder_of(file.path) for file in job))
        if len(folders) == 1 and len(owners[folders[0]]) == 1 and folders[0]:
            sources = folders
        else:
            sources = [file.path for file in job]
        shown = " ".join(shlex.quote(source) for source in sources[:MOST_FILES])
        more = " ..." if len(sources) > MOST_FILES else ""
        run = default_run_name(sources[0])
        yield f"hta-sql ingest {shown}{more} --run {shlex.quote(run)} -o STORE"


def _jobs(files: Sequence[TraceFile]) -> list[list[TraceFile]]:
    """Group the files by stated facts and folder, so that each rank of a job has one process."""
    units: dict[tuple[object, ...], list[TraceFile]] = defaultdict(list)
    for file in sorted(files, key=lambda file: (folder_of(file.path), file.start_ns, file.path)):
        stated = file.stated
        facts = (file.role, stated and stated.world_size, stated and stated.backend)
        # File names of one world often differ only in numbers.
        form = _NUMBERS.sub("#", file.path.rpartition("/")[2])
        units[(folder_of(file.path), form), *facts].append(file)
    jobs: list[tuple[tuple[object, ...], list[TraceFile]]] = []
    for (_, *key), unit in units.items():
        mixed = any(_differ(one, other) for one, other in _of_one_rank(unit)) or _are_in_turn(unit)
        for part in [[file] for file in unit] if mixed else [unit]:
            ranks = {file.rank for file in part}
            same = next(
                (
                    of
                    for k, of in jobs
                    if k == tuple(key) and key[1] and ranks.isdisjoint(f.rank for f in of)
                ),
                None,
            )
            if same is None:
                jobs.append((tuple(key), list(part)))
            else:
                same.extend(part)
    return [of for _, of in jobs]


def _job_text(files: Sequence[TraceFile], names: dict[str, str]) -> str:
    """Format a job as ``ddp (world size 2, gloo, 2 files)``.

    The text starts with the folders of the job, or with its files if they are in one folder.
    """
    shown = list(dict.fromkeys(folder_of(names[file.path]) or names[file.path] for file in files))
    stated = files[0].stated
    facts = [
        *([f"world size {stated.world_size}"] if stated and stated.world_size else []),
        *([stated.backend] if stated and stated.backend else []),
        counted(len(files), "file"),
    ]
    return f"{first_of(shown, MOST_FILES)} ({', '.join(facts)})"
