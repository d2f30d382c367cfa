"""Finds roles in the names of folders and files, with the rules in sql/tables/role_names.csv."""

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
    """Return the roles in the names of traces, if the names contain at least two roles.

    Only the parts in which the paths differ are considered. Names are ignored if one process
    recorded traces of several roles: for example, a benchmark may name the phases of a single
    server prefill and decode.

    Args:
        stated: Path of each trace ─▶ facts that it states.
        is_decided: Returns whether the role of a path is known from another source.
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
                "Trace names contain the roles %s and %s, but process %s recorded both, so the "
                "names are ignored. To assign roles: --role ROLE=PATH (role={role: path}).",
                one,
                other,
                process,
            )
            return {}
    log.warning(
        "Roles inferred from folder and file names: %s. To assign other roles: "
        "--role ROLE=PATH (role={role: path}).",
        ", ".join(f"{role} ({counted(count, 'file')})" for role, count in sorted(used.items())),
    )
    return found


def _shared(some: list[str], others: list[str], stated: Mapping[str, Stated | None]) -> int | None:
    """Return a process ID that traces in both lists state; None if there is none."""
    one, other = (
        {about.pid for path in paths if (about := stated[path]) and about.pid is not None}
        for paths in (some, others)
    )
    return min(one & other, default=None)


def role_in_name(name: str) -> str | None:
    """Return the role in a relative path; None if there is no role, or several in one name.

    An outer folder takes precedence over inner folders: decode servers of a rollout have the role
    rollout.
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
    """Return the rules: pairs of a pattern and a role, or None for names that are not roles."""
    path = sql_root() / "tables" / RULES
    with path.open(encoding="utf-8", newline="") as file:
        return [
            (
                re.compile(rf"(?<![a-z0-9])(?:{line['pattern']})\d*(?![a-z0-9])", re.IGNORECASE),
                line["role"] or None,
            )
            for line in csv.DictReader(file)
        ]
