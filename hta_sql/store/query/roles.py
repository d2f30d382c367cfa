"""Finds the ranks that have a role (trainer, rollout, …) in a job."""

from __future__ import annotations

from collections.abc import Callable, Collection

from hta_sql.errors import RankError
from hta_sql.library.sql_files import reader_sql
from hta_sql.results.result import Result

Rank = tuple[str, int]
"""Run and rank."""


def ranks_of_roles(sql: Callable[[str], Result], roles: Collection[str]) -> set[Rank]:
    """Return the run and rank of each process with one of the requested roles.

    Args:
        sql: Runs a query on the store.
        roles: Requested roles.

    Raises:
        RankError: No rank has one of the roles; the message lists the existing roles.
    """
    rows = sql(reader_sql("rank_roles")).rows()
    known = sorted({role for _, _, role in rows if role})
    for role in sorted(roles):
        if role not in known:
            there = f"available roles: {', '.join(known)}" if known else "no rank has a role"
            raise RankError(f"No role {role!r}; {there}.")
    return {(run, rank) for run, rank, role in rows if role in roles}
