"""Roles of a job (trainer, rollout, …) as the ranks that have them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from hta_sql.errors import ParameterError, RankError
from hta_sql.library.sql_files import reader_sql
from hta_sql.results.result import Result


def ranks_of_roles(
    sql: Callable[[str], Result],
    roles: Iterable[str],
    runs: Collection[str] | None = None,
    ranks: Collection[int] | None = None,
) -> list[int]:
    """Return the ranks with one of the requested roles.

    Args:
        sql: Runs a query on the store.
        roles: Requested roles.
        runs: Requested runs; None: all.
        ranks: Requested ranks; None: all.

    Raises:
        ParameterError: Runs disagree about the ranks of these roles, so a list of ranks would
            select others in one of them.
        RankError: No rank has a role, or none of the requested ranks has it.
    """
    wanted = {roles} if isinstance(roles, str) else set(roles)
    of_run: dict[str, dict[int, str | None]] = {}
    for run, rank, role in sql(reader_sql("rank_roles")).rows():
        if runs is None or run in runs:
            of_run.setdefault(run, {})[rank] = role
    if not of_run:  # the query names the missing run
        return list(ranks or ())
    known = sorted({role for of_rank in of_run.values() for role in of_rank.values() if role})
    for role in sorted(wanted):
        if role not in known:
            there = f"there are: {', '.join(known)}" if known else "no rank states a role"
            raise RankError(f"No role {role!r}; {there}.")
    chosen = {
        run: [rank for rank, role in of_rank.items() if role in wanted]
        for run, of_rank in of_run.items()
    }
    if len({tuple(found) for found in chosen.values()}) > 1:
        raise ParameterError(
            f"{', '.join(sorted(wanted))} are other ranks in run {min(chosen)!r} than in others; "
            f"request one run with runs=[...]."
        )
    found = [rank for rank in next(iter(chosen.values())) if ranks is None or rank in ranks]
    if not found:
        raise RankError(f"None of the requested ranks has the role {', '.join(sorted(wanted))}.")
    return found


def without_roles(sql: Callable[[str], Result], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a query with ``roles`` replaced by the ranks of these roles."""
    values = dict(parameters)
    if (roles := values.pop("roles", None)) is not None:
        values["ranks"] = ranks_of_roles(sql, roles, values.get("runs"), values.get("ranks"))
    return values
