"""Determines the roles of processes (trainer, rollout, …) in a job, and the ranks of each role.

A role is requested by the caller, stated by the trace, or found in names. Processes of several
roles are often separate worlds that each number their ranks from 0. Ranks must be unique in a run:
if stated ranks collide between roles, each role gets a separate range of ranks.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from hta_sql.errors import ParameterError, RankError, TraceNotFoundError
from hta_sql.ingestion.role_names import named_roles
from hta_sql.ingestion.trace_file import TraceFile, check_rank
from hta_sql.store.disk.location import absolute
from hta_sql.store.disk.manifest import RankEntry
from hta_sql.text import first_of, rank_spans
from hta_sql.traces import Traces
from hta_sql.traces.peek import Stated

log = logging.getLogger(__name__)

RoleOption = str | Mapping[str, Traces]
"""The role of all traces, or role ─▶ its traces: a file, a folder, a glob, or a list of these."""

_ROLE = re.compile(r"[^\x00-\x1f\x7f,=]{1,100}")

MOST_NAMED = 10
"""Maximum number of roles in a message."""


@dataclass(frozen=True)
class RequestedRole:
    """A role that the caller requests for traces."""

    role: str
    paths: tuple[str, ...] | None
    """Files, folders and globs; None: all traces."""

    def match(self, path: str) -> int | None:
        """Return the length of the longest path that matches a trace; None if no path matches."""
        if self.paths is None:
            return 0
        named = [given for given in self.paths if _is_below(path, given)]
        return max(map(len, named), default=None)


def _is_below(path: str, given: str) -> bool:
    """Return whether a path is the given file, is in the given folder or archive, or matches it."""
    return (
        path == given
        or path.startswith(f"{given.rstrip('/')}/")
        or path.endswith((f"::{given}", f"::file://{given}"))
        or (any(c in given for c in "*?[") and fnmatchcase(path, given))
    )


def requested_roles(option: RoleOption | None) -> list[RequestedRole]:
    """Validate the option ``role`` of an ingest.

    Raises:
        ParameterError: The name of a role is not valid.
    """
    if option is None:
        return []
    given: Mapping[str, Traces | None] = {option: None} if isinstance(option, str) else option
    found = []
    for role, traces in given.items():
        if not isinstance(role, str) or not _ROLE.fullmatch(role) or role != role.strip():
            raise ParameterError(
                f"Role {role!r}: use one line without ',' or '=', at most 100 characters."
            )
        found.append(RequestedRole(role, None if traces is None else _paths(traces)))
    return found


def _paths(traces: Traces) -> tuple[str, ...]:
    if isinstance(traces, (str, os.PathLike)):
        return (absolute(traces),)
    items = traces.values() if isinstance(traces, Mapping) else traces
    return tuple(absolute(path) for path in items)


@dataclass(frozen=True)
class World:
    """The range of ranks of a role in a run."""

    first_rank: int
    end: int
    """First rank that later roles may use."""


@dataclass(frozen=True)
class KnownRoles:
    """Roles in the store that an ingest extends.

    Attributes:
        worlds: Role ─▶ range of its ranks; the key None stands for traces without a role.
        owners: Rank ─▶ role, for traces in the store that are not ingested again.
    """

    worlds: dict[str | None, World] = field(default_factory=dict)
    owners: dict[int, str | None] = field(default_factory=dict)


def known_roles(entries: Iterable[RankEntry], paths: Iterable[str]) -> KnownRoles:
    """Return the roles of a run in the store.

    Args:
        entries: The entries of the run.
        paths: Traces that are ingested; their entries own no ranks, but extend their role's range.
    """
    again = set(paths)
    known = KnownRoles()
    for entry in entries:
        if entry.path not in again:
            known.owners[entry.rank] = entry.role
        elif entry.role is None:
            continue  # it may have a role now
        size = entry.facts.get("world_size") or 0
        end = entry.first_rank + max(size, entry.rank - entry.first_rank + 1)
        world = known.worlds.get(entry.role)
        known.worlds[entry.role] = World(entry.first_rank, max(end, world.end if world else 0))
    return known


Kept = tuple[str | None, str | None]
RoleOf = Callable[[str, Stated | None], Kept | None]
"""Path of a trace, and the facts that it states ─▶ its role, and the source of the role."""


@dataclass(frozen=True)
class DiscoveredRoles:
    """Sources of the roles of traces.

    Attributes:
        requested: Roles that the caller requests.
        kept: Path ─▶ role of a stored trace of the run, and its source; both None without a role.
        known: Paths ─▶ the roles of the run in the store.
    """

    requested: Sequence[RequestedRole] = ()
    kept: Callable[[str], Kept | None] = lambda _: None
    known: Callable[[Sequence[str]], KnownRoles] = lambda _: KnownRoles()

    def finder(self, stated: Mapping[str, Stated | None]) -> RoleOf:
        """Return a function that returns the role of a trace and the source of the role.

        Args:
            stated: Path of each trace ─▶ facts that it states.
        """

        def is_decided(path: str) -> bool:
            about = stated[path]
            return bool(about and about.role) or requested_role(self.requested, path) is not None

        unknown = {path: about for path, about in stated.items() if not self.kept(path)}
        return role_finder(self.requested, named_roles(unknown, is_decided), self.kept)


def with_role(file: TraceFile, role_of: RoleOf) -> TraceFile:
    """Return a trace with its role."""
    role, source = role_of(file.path, file.stated) or (None, None)
    return replace(file, role=role, role_source=source)


def role_finder(
    requested: Sequence[RequestedRole],
    named: Mapping[str, str],
    kept: Callable[[str], Kept | None],
) -> RoleOf:
    """Return a function that returns the role of a trace and the source of the role.

    In order of precedence, the sources are the caller's option, ``distributedInfo``, the store, and
    the names of folders and files.

    Args:
        requested: Roles that the caller requests.
        named: Path ─▶ role in the names of folders and files.
        kept: Path ─▶ role of a stored trace, and its source.
    """

    def role_of(path: str, stated: Stated | None) -> Kept | None:
        says = stated.role if stated else None
        if role := requested_role(requested, path):
            if says and says != role:
                log.warning(
                    "%s specifies the role %s; using the requested role %s instead.",
                    path,
                    says,
                    role,
                )
            return role, "given"
        if says:
            if named.get(path, says) != says:
                log.warning(
                    "%s specifies the role %s, but its name contains %s; using the specified role.",
                    path,
                    says,
                    named[path],
                )
            return says, "distributedInfo"
        return kept(path) or ((named[path], "names") if path in named else None)

    return role_of


def requested_role(requested: Sequence[RequestedRole], path: str) -> str | None:
    """Return the role that the caller requests for a trace; the most specific path wins."""
    local = absolute(path)
    matches = [(length, one.role) for one in requested if (length := one.match(local)) is not None]
    return max(matches, key=lambda match: match[0])[1] if matches else None


def check_requested(requested: Sequence[RequestedRole], paths: Sequence[str]) -> None:
    """Raise if a requested role matches no trace.

    Raises:
        TraceNotFoundError: No trace is at or below a path of a role.
    """
    for one in requested:
        for given in one.paths or ():
            if not any(_is_below(absolute(path), given) for path in paths):
                raise TraceNotFoundError(
                    f"Role {one.role}: none of the traces is at or below {given!r}. Also pass that "
                    "path as a trace."
                )


def place_roles(
    found: Sequence[TraceFile], requested: Sequence[RequestedRole], known: KnownRoles
) -> list[TraceFile]:
    """Assign a separate range of ranks to each role if the stated ranks collide between roles.

    Roles in the store keep their ranks. Other roles follow in the order of the option, then by
    name. A role keeps the ranks that its traces state, unless a previous role has them; then its
    ranks begin after the ranks of all previous roles.

    Args:
        found: The traces, with the ranks that they state in their own worlds.
        requested: Roles that the caller requests.
        known: Roles in the store.

    Returns:
        The traces, with their ranks in the run.

    Raises:
        RankError: New ranks of a role in the store belong to another role.
    """
    roles = {file.role for file in found} | known.worlds.keys()
    if len(roles) < 2:
        return list(found)
    worlds = _worlds(found, [one.role for one in requested], known)
    placed = [
        file
        if file.rank_source == "given"
        else replace(
            file,
            rank=file.rank + worlds[file.role].first_rank,
            first_rank=worlds[file.role].first_rank,
        )
        for file in found
    ]
    _check_range(placed)
    if any(file.first_rank for file in placed):
        _warn_of_placed(placed)
    return placed


def _worlds(
    found: Sequence[TraceFile], order: Sequence[str], known: KnownRoles
) -> dict[str | None, World]:
    """Choose the range of ranks of each role."""
    position = {role: number for number, role in enumerate(order)}
    own: dict[str | None, set[int]] = {}
    sizes: dict[str | None, int] = {}
    for file in found:
        own.setdefault(file.role, set()).add(file.rank)
        size = (file.stated and file.stated.world_size) or 0
        sizes[file.role] = max(sizes.get(file.role, 0), size, file.rank + 1)

    def key(role: str | None) -> tuple[bool, bool, int, str]:
        # Roles in the store are first, then traces without a role.
        return (
            role not in known.worlds,
            role is not None,
            position.get(role or "", len(order)),
            role or "",
        )

    worlds = dict(known.worlds)
    owners = dict(known.owners)
    for role in sorted(own, key=key):
        taken = {rank for rank, owner in owners.items() if owner != role}
        first = known.worlds[role].first_rank if role in known.worlds else 0
        if not taken.isdisjoint(rank + first for rank in own[role]):
            if role in known.worlds:
                _refuse(role, {rank + first for rank in own[role]} & taken, owners)
            first = max((world.end for world in worlds.values()), default=0)
        stored = known.worlds.get(role)
        worlds[role] = World(first, max(first + sizes[role], stored.end if stored else 0))
        owners |= {rank + first: role for rank in own[role]}
    return worlds


def _refuse(role: str | None, ranks: set[int], owners: Mapping[int, str | None]) -> None:
    others = sorted({owners[rank] or "none" for rank in ranks})
    raise RankError(
        f"Ranks {rank_spans(ranks)} of role {role or 'none'} belong to role {', '.join(others)} in "
        "the store. Ingest the traces of all roles in one call, as a new run: hta-sql ingest "
        "TRACES --run NAME -o STORE."
    )


def _check_range(placed: Sequence[TraceFile]) -> None:
    """Raise if a rank is too large for its column, or if a file's rank cannot be changed."""
    for file in placed:
        check_rank(file.rank, file.path)
        if file.first_rank and file.stated is None:
            raise RankError(
                f"{file.path!r} is cluster data, whose links identify ranks by number, but rank "
                f"{file.rank - file.first_rank} also exists in another role, so the links are ambiguous. "
                "Ingest the cluster data of each role as a separate run: hta-sql ingest FOLDER --run NAME -o STORE."
            )


def _warn_of_placed(placed: Sequence[TraceFile]) -> None:
    """Log the ranks of each role in the run, in one message."""
    ranks: dict[tuple[int, str], set[int]] = {}
    for file in placed:
        ranks.setdefault((file.first_rank, file.role or "without a role"), set()).add(file.rank)
    parts = [f"{role} {rank_spans(of)}" for (_, role), of in sorted(ranks.items())]
    log.warning(
        "Roles number their ranks separately, so each role has a separate range of ranks in the "
        "run: %s. The column role_rank of the table ranks is the rank within the role.",
        first_of(parts, MOST_NAMED, "; "),
    )
