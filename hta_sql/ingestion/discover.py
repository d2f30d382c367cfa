"""Determines the rank and capture of each trace file: paths ─▶ rank ─▶ file.

The first source that gives a rank wins: the caller's {rank: path}, ``distributedInfo.rank`` inside
the trace, the file name, or (with a warning) the order of the file names. In file names, the
caller's regex takes precedence over the built-in patterns. Files that one process wrote in sequence
belong to the same rank.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count, pairwise, product

from hta_sql.errors import (
    ParameterError,
    RankError,
    TraceError,
    TraceFormatError,
    TraceNotFoundError,
)
from hta_sql.ingestion.captures import folder_of, number_captures, number_dumps, process_of
from hta_sql.ingestion.consistency import warn_of_mixed_jobs
from hta_sql.ingestion.graph_captures import split_captures, with_captures
from hta_sql.ingestion.jobs import BY_ORDER, check_one_job
from hta_sql.ingestion.kernel_files import split_kernel_files, with_kernel_files
from hta_sql.ingestion.listing import list_trace_paths
from hta_sql.ingestion.roles import (
    DiscoveredRoles,
    RoleOf,
    check_requested,
    place_roles,
    with_role,
)
from hta_sql.ingestion.trace_file import TraceFile, check_rank
from hta_sql.ingestion.vendors.mindspore import SUPPORTED, ClusterFile, cluster_file, is_unsupported
from hta_sql.store.disk.manifest import RANKS
from hta_sql.text import counted, first_of, rank_spans
from hta_sql.traces import TraceNames
from hta_sql.traces.peek import Kind, Stated, peek
from hta_sql.traces.source import is_remote, located

log = logging.getLogger(__name__)

NAME_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:^|[^a-z])rank[-_.]?\[?(\d+)\]?",  # rank0, rank-0, rank_0, rank[0]
        r"(?:^|[^a-z])worker[-_.]?(\d+)",  # torch's handler with worker_name, TensorBoard
        r"^TP-?(\d+)(?:-DP-?0)?(?:-PP-?0)?(?:-EP-?0)?[.\-_]",  # SGLang with a single active group
        r"^(\d+)\.(?:pt\.trace\.)?json",  # 0.json
    )
)

MAX_DIGITS = 20

MANY_SKIPPED = 5
"""Maximum number of skipped files that are logged separately; more are summarized in one line."""

Peek = Callable[[str], Stated]
"""Path ─▶ facts that the trace states about itself."""


def discover(
    traces: TraceNames,
    *,
    ranks: Iterable[int] | None = None,
    rank_regex: str | None = None,
    look: Peek | None = None,
    join_spans: bool = False,
    one_job: bool = False,
    captures: TraceNames | None = None,
    roles: DiscoveredRoles | None = None,
) -> list[TraceFile]:
    """Find the traces and their ranks.

    Args:
        traces: A file, a folder (searched recursively), a glob, a list of these,
            or {rank: path}; local paths or fsspec URLs.
        ranks: Ranks to return; None: all.
        rank_regex: Regular expression whose first group matches the rank in a file name.
        look: Function to use instead of :func:`peek`; it may return known facts without reading the
            file.
        join_spans: Whether several captures are joined into one run, so that no warning is needed.
        one_job: Whether to treat the traces as one job, whatever they state.
        captures: Traces of graph captures, in the same forms as ``traces``. Graph captures among
            the traces are recognized by name.
        roles: Roles that the caller requests, and roles in the store.

    Returns:
        The traces sorted by capture and rank. Several files of one rank are several captures in
        time order; they are never merged.

    Raises:
        TraceNotFoundError: No file was found, no file is a trace, or a role matches no trace.
        RankError: A requested rank is missing, or the traces come from several jobs.
        ParameterError: rank_regex is not a regular expression with a group.
    """
    look, roles = look or peek, roles or DiscoveredRoles()
    of_graphs = _captures_of(captures, rank_regex, look, roles)
    kernels: list[str] = []
    if isinstance(traces, Mapping):
        role_of = roles.finder({})
        check_requested(roles.requested, list(traces.values()))
        found = [_given(int(rank), path, look, role_of) for rank, path in traces.items()]
    else:
        every, kernels = split_kernel_files(list_trace_paths(traces))
        check_requested(roles.requested, every)
        listed, named = split_captures(every)
        clusters, paths = _split(listed, roles)
        patterns = _compiled(rank_regex)
        beside = len(clusters) + len(named)
        found = _by_ladder(paths, patterns, look, roles, beside=beside) + clusters
        recognized = _by_ladder(named, patterns, look, roles, beside=0) if named else []
        if found:
            of_graphs += recognized
        else:  # without other traces, graph captures are ingested like traces
            found = recognized
    found = place_roles(found, roles.requested, roles.known([file.path for file in found]))
    dumps = [file for file in found if file.kind == "dump"]
    snapshots = [file for file in found if file.kind == "snapshot"]
    nodes = [file for file in found if file.kind == "execution_trace"]
    found = [file for file in found if file.kind == "trace"]
    if not one_job:
        check_one_job(found)
    _warn_of_order([*found, *dumps, *snapshots, *nodes])
    found = with_captures(number_captures(found, join_spans=join_spans), of_graphs)
    found = with_kernel_files(found, kernels)
    warn_of_mixed_jobs(found, all_wanted=ranks is None)
    found += number_dumps(dumps) + number_captures(snapshots) + number_captures(nodes)
    if ranks is None:
        return found
    wanted = sorted(set(ranks))
    missing = set(wanted) - {file.rank for file in found}
    if missing:
        raise RankError(
            f"No trace was found for rank {', '.join(map(str, sorted(missing)))}; available ranks: "
            f"{rank_spans(file.rank for file in found)}."
        )
    return [file for file in found if file.rank in wanted]


def _captures_of(
    captures: TraceNames | None, rank_regex: str | None, look: Peek, roles: DiscoveredRoles
) -> list[TraceFile]:
    """Find the graph captures that the caller passes, and the rank of each."""
    if captures is None:
        return []
    if isinstance(captures, Mapping):
        role_of = roles.finder({})
        return [_given(int(rank), path, look, role_of) for rank, path in captures.items()]
    return _by_ladder(list_trace_paths(captures), _compiled(rank_regex), look, roles, beside=0)


def _given(rank: int, path: str, look: Peek, role_of: RoleOf) -> TraceFile:
    if cluster_file(_existing(path)):
        return with_role(TraceFile(path, rank, "given"), role_of)
    check_rank(rank, path)
    stated = look(path)
    if stated.merged:
        raise RankError(
            f"{path!r} is merged from the traces of ranks {rank_spans(of.rank for of in stated.merged)}. "
            "Pass the path itself: its ranks are read from it."
        )
    return with_role(TraceFile(path, rank, "given", stated.start_ns, stated=stated), role_of)


def _split(paths: list[str], roles: DiscoveredRoles) -> tuple[list[TraceFile], list[str]]:
    """Separate MindSpore's cluster data, in which several files form one rank, from traces.

    Returns:
        One entry per rank, for its first file, and the remaining paths.
    """
    left_out = [path for path in paths if is_unsupported(path)]
    if left_out:
        names = sorted({path.rpartition("/")[2] for path in left_out})
        log.warning(
            "Skipped unsupported MindSpore profiler files: %s. Supported cluster data: %s.",
            first_of(names, MANY_SKIPPED),
            ", ".join(SUPPORTED),
        )
    ranks: dict[tuple[str, int], list[ClusterFile]] = defaultdict(list)
    rest = []
    for path in paths:
        file = cluster_file(path)
        if file:
            ranks[file.folder, file.rank].append(file)
        elif not is_unsupported(path):
            rest.append(path)
    kinds = ("step_trace", "analysis", "hccl", "flops", "memory")
    firsts = [min(files, key=lambda file: kinds.index(file.kind)) for files in ranks.values()]
    files = [TraceFile(file.path, file.rank, "file name") for file in firsts]
    role_of = roles.finder({file.path: None for file in files})
    return [with_role(file, role_of) for file in files], rest


def _existing(path: str) -> str:
    fs, root = located(path)
    if not fs.exists(root):
        raise TraceNotFoundError(f"No such file: {path!r}.")
    return path


def _compiled(rank_regex: str | None) -> tuple[re.Pattern[str], ...]:
    if rank_regex is None:
        return NAME_PATTERNS
    try:
        pattern = re.compile(rank_regex)
    except re.error as error:
        raise ParameterError(
            f"rank_regex {rank_regex!r} is not a valid regular expression: {error}."
        ) from error
    if not pattern.groups:
        raise ParameterError(
            f"rank_regex {rank_regex!r} has no capture group: put the digits of the rank in parentheses."
        )
    return (pattern, *NAME_PATTERNS)


def _by_ladder(
    paths: list[str],
    patterns: tuple[re.Pattern[str], ...],
    look: Peek,
    roles: DiscoveredRoles,
    *,
    beside: int,
) -> list[TraceFile]:
    """Determine the rank of each trace; skip files that are not traces.

    If no other files were found, at least one of the files must be a trace.
    """
    known: list[TraceFile] = []
    skipped: dict[str, TraceError] = {}
    merged: dict[str, Stated] = {}
    for path in paths:
        try:
            stated = _looked_at(path, look)
        except (TraceFormatError, TraceNotFoundError) as error:
            # A file on a network may be temporarily unavailable, so it is not skipped.
            is_lost = isinstance(error, TraceNotFoundError) and is_remote(path)
            if is_lost or (len(paths) == 1 and not beside):
                raise
            skipped[path] = error
            continue
        if stated.merged:
            merged[path] = stated
        else:
            known.append(_with_rank(path, stated, patterns))
    _warn_of_skipped(skipped)
    for path, stated in merged.items():
        known += _ranks_of_merged(path, stated, known)
    if not known and not beside:
        raise TraceNotFoundError(f"None of the {len(paths)} files is a Kineto trace.")
    role_of = roles.finder({file.path: file.stated for file in known})
    known = [with_role(file, role_of) for file in known]
    found = [file for file in known if file.rank_source != BY_ORDER]
    unknown = [file for file in known if file.rank_source == BY_ORDER]
    # A snapshot or execution trace may have the same rank as a trace, so each kind is numbered
    # separately.
    kinds: tuple[set[Kind], ...] = ({"trace", "dump"}, {"snapshot"}, {"execution_trace"})
    for kind, role in product(kinds, dict.fromkeys(file.role for file in unknown)):
        taken = {file.rank for file in found if file.kind in kind and file.role == role}
        of_kind = [file for file in unknown if file.kind in kind and file.role == role]
        found += _by_order(of_kind, taken)
    return found


def _with_rank(path: str, stated: Stated, patterns: tuple[re.Pattern[str], ...]) -> TraceFile:
    """Return a trace with the rank that it or its name states; -1 if neither does."""
    named = _rank_in_name(path, patterns)
    if stated.rank is not None and stated.kind != "dump":
        source, rank = "distributedInfo", stated.rank
    elif named is not None:
        source, rank = "file name", named
    elif stated.rank is not None:
        source, rank = "file name", stated.rank
    else:
        source, rank = BY_ORDER, -1
    return TraceFile(path, rank, source, stated.start_ns, stated=stated)


def _ranks_of_merged(path: str, stated: Stated, others: Sequence[TraceFile]) -> list[TraceFile]:
    """Return one entry per rank of a merged file, unless its ranks are in the same folder, too."""
    ranks = {of.rank for of in stated.merged}
    neighbors = [file for file in others if folder_of(file.path) == folder_of(path)]
    if ranks <= {file.rank for file in neighbors}:
        log.warning(
            "Skipped %s, which is merged from ranks %s: their own traces are in the same folder.",
            path,
            rank_spans(ranks),
        )
        return []
    log.info("%s is merged from ranks %s; each is read on its own.", path, rank_spans(ranks))
    facts = stated._replace(rank=None, trace_id=None, process=None, end_ns=None, pid=None)
    facts = facts._replace(groups=frozenset(), merged=())
    return [
        TraceFile(of.path(path), of.rank, "merged file", stated.start_ns, stated=facts)
        for of in stated.merged
    ]


def _looked_at(path: str, look: Peek) -> Stated:
    stated = look(path)
    if stated.rank is not None and stated.rank not in RANKS:
        raise TraceFormatError(
            f"{path!r} specifies rank {stated.rank}; a rank must be below {RANKS.stop:,}. Pass the "
            f"correct rank: ingest({{rank: path}})."
        )
    return stated


def _warn_of_skipped(skipped: dict[str, TraceError]) -> None:
    """Log the skipped files, or a summary of more than MANY_SKIPPED, to keep other logs visible."""
    for error in skipped.values():
        log.log(
            logging.WARNING if len(skipped) <= MANY_SKIPPED else logging.INFO, "Skipped: %s", error
        )
    if len(skipped) > MANY_SKIPPED:
        unreadable = [p for p, error in skipped.items() if isinstance(error, TraceNotFoundError)]
        named = [*unreadable, *skipped][:MANY_SKIPPED]
        log.warning(
            "Skipped %s that are not Kineto traces%s, such as %s (--verbose lists each).",
            counted(len(skipped), "file"),
            f" or cannot be opened ({counted(len(unreadable), 'file')})" if unreadable else "",
            ", ".join(map(repr, named)),
        )


def _by_order(unknown: list[TraceFile], taken: set[int]) -> list[TraceFile]:
    """Assign the free ranks of a role to its processes in the order of their file names."""
    free = (rank for rank in count() if rank not in taken)
    ranks: dict[str, int] = {}
    found = []
    processes = _processes_by_path(unknown)
    for file in unknown:
        process = processes.get(file.path) or _process(file.path)
        rank = ranks[process] if process in ranks else ranks.setdefault(process, next(free))
        found.append(replace(file, rank=rank))
    return found


def _warn_of_order(found: Sequence[TraceFile]) -> None:
    """Log the ranks that follow from the order of names, if a role has several ranks."""
    ranks: dict[tuple[Kind, str | None], set[int]] = defaultdict(set)
    for file in found:
        ranks[file.kind, file.role].add(file.rank)
    for file in found:
        if file.rank_source == BY_ORDER and len(ranks[file.kind, file.role]) > 1:
            of_role = f" of role {file.role}" if file.role else ""
            log.warning(
                "%s does not specify its rank; using rank %d%s.", file.path, file.rank, of_role
            )


def _processes_by_path(unknown: list[TraceFile]) -> dict[str, str]:
    """Return the process that each file states, unless files of that process overlap in time.

    Processes on two hosts may have the same process ID, but then their recordings overlap.
    """
    said: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for file in unknown:
        path, stated = file.path, file.stated
        if stated and stated.process and stated.end_ns and not process_of(path):
            process = f"{folder_of(path)}/{stated.process}"
            said[process].append((stated.start_ns, stated.end_ns, path))
    return {
        path: process
        for process, spans in said.items()
        if all(one[1] <= other[0] for one, other in pairwise(sorted(spans)))
        for _, _, path in spans
    }


def _process(path: str) -> str:
    """Return the process that wrote a trace; it is the same if names differ only in the time."""
    process = process_of(path)
    return f"{folder_of(path)}/{process}" if process else path


def _rank_in_name(path: str, patterns: tuple[re.Pattern[str], ...]) -> int | None:
    name = path.rsplit("/", 1)[-1]
    for pattern in patterns:
        match = pattern.search(name)
        # A larger number is a time or an id.
        if match and len(match.group(1)) < MAX_DIGITS and int(match.group(1)) in RANKS:
            return int(match.group(1))
    return None
