"""Roles in the names of folders and files, by the rules of sql/tables/role_names.csv."""

from __future__ import annotations

import csv
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations

from hta_sql.ingestion.captures import distinct_names
from hta_sql.library.sql_files import sql_root
from hta_sql.text import counted
from hta_sql.traces.peek import Stated

log = logging.getLogger(__name__)

RULES = "role_names.csv"


def named_roles(
    stated: Mapping[str, Stated | None], is_decided: Callable[[str], bool]
) -> dict[str, str]:
    """Return the roles that the names of traces state, if they state at least two.

    Only parts of paths in which the traces differ count. Names are ignored if one process
    recorded traces of several roles: a benchmark also names the phases of one server prefill and
    decode.

    Args:
        stated: Path of each trace ─▶ what it states.
        is_decided: Whether the role of a path has another source, so that its name does not count.
    """
    paths = list(stated)
    # Members of archives are zip://FOLDER/NAME::ARCHIVE.
    names = distinct_names([path.partition("::")[0] for path in paths])
    found = {
        path: role
        for path, name in zip(paths, names, strict=True)
        if (role := role_in_name(name)) is not None
    }
    files: dict[str, list[str]] = defaultdict(list)
    for path, role in found.items():
        files[role].append(path)
    used = Counter(role for path, role in found.items() if not is_decided(path))
    if len(files) < 2 or not used:
        return found if len(files) > 1 else {}
    for one, other in combinations(sorted(files), 2):
        if process := _shared(files[one], files[other], stated):
            log.warning(
                "Names of traces say %s and %s, but process %s recorded both, so they are no roles of processes. "
                "To give them roles: --role ROLE=PATH (role={role: path}).",
                one,
                other,
                process,
            )
            return {}
    log.warning(
        "Roles by the names of folders and files: %s. To give other roles: --role ROLE=PATH (role={role: path}).",
        ", ".join(f"{role} ({counted(count, 'file')})" for role, count in sorted(used.items())),
    )
    return found


def _shared(some: list[str], others: list[str], stated: Mapping[str, Stated | None]) -> int | None:
    """Return a process ID of traces in both lists; None if there is none."""
    one, other = (
        {about.pid for path in paths if (about := stated[path]) and about.pid is not None}
        for paths in (some, others)
    )
    return min(one & other, default=None)


def role_in_name(name: str) -> str | None:
    """Return the role that a relative path states; None without one, or with several in one name.

    An outer folder takes precedence over inner ones: decode servers of a rollout are of the rollout.
    """
    for part in name.split("/"):
        roles = {role for pattern, role in _rules() if pattern.search(part)}
        if len(roles - {None}) > 1:
            return None
        if roles and None not in roles:
            return roles.pop()
    return None


@cache
def _rules() -> list[tuple[re.Pattern[str], str | None]]:
    """Return the rules: a pattern, and the role or None."""
    path = sql_root() / "tables" / RULES
    with path.open(encoding="utf-8", newline="") as file:
        return [
            (
                re.compile(rf"(?<![a-z0-9])(?:{line['pattern']})\d*(?![a-z0-9])", re.IGNORECASE),
                line["role"] or None,
            )
            for line in csv.DictReader(file)
        ]
