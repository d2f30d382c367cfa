"""Builds the SQL that extracts event arguments into columns, from the list of arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from hta_sql.library.sqltext import literal


def extraction(
    table: str,
    fields: Iterable[str],
    *,
    structure: Mapping[str, str],
    whole_keys: str,
    columns: Mapping[str, str],
    held: Mapping[str, str],
) -> str:
    """Build the SELECT that extracts one table's events from a batch, with arguments as columns.

    ``args`` is NULL unless it contains something that the columns do not: a key without a column, a
    null, or a value that does not match the form of its column. ``odd_arguments`` lists the
    arguments whose value does not match.

    Args:
        table: Name of the table, quoted here.
        fields: Event fields to copy, trusted.
        structure: Argument, quoted here ─▶ type, trusted.
        whole_keys: Integer arguments, as a regular expression; quoted here.
        columns: Column ─▶ SQL of its value over the event ``d`` and its arguments ``d.a``; trusted.
        held: Argument, quoted here ─▶ SQL condition on the columns ``c``, trusted: whether a column
            contains the argument.
    """
    kept = ", ".join(f"d.{field}" for field in fields)
    values = ",\n        ".join(f"{value} AS {column}" for column, value in columns.items())
    count = " + ".join(f"({condition})::INTEGER" for condition in held.values())
    leaves_args = f"NOT starts_with(c.args, '{{') OR len(json_keys(c.args)) <> ({count})"
    known = ", ".join(map(literal, held))
    odd = ", ".join(
        f"CASE WHEN NOT ({condition}) AND json_type(c.args, {literal(pointer(name))}) <> 'NULL' THEN {literal(name)} END"
        for name, condition in held.items()
    )
    return f"""WITH
    decoded AS (
        SELECT e.*, from_json(exact_args(e.args, {literal(whole_keys)}), {literal(json.dumps(structure))}) AS a
        FROM batch_events AS e
        WHERE e.target = {literal(table)}
    ),
    columns AS (
        SELECT {kept}, d.args,
        {values}
        FROM decoded AS d
    )
SELECT
    c.* EXCLUDE (args),
    -- Most events with more than the columns hold have a key that is unknown: counting tells them, quickly.
    CASE
        WHEN ({leaves_args}) AND len(list_intersect(json_keys(c.args), [{known}])) > ({count})
            THEN nullif(list_filter([{odd}], lambda name: name IS NOT NULL), [])
    END AS odd_arguments,
    CASE WHEN {leaves_args} THEN c.args END AS args
FROM columns AS c"""  # noqa: S608 - only names of the library


def decoded(argument: str) -> str:
    """Build the SQL for the value of an argument of the event ``d``."""
    return f"d.a[{literal(argument)}]"


def pointer(key: str) -> str:
    """Return the JSON pointer to a key of an object."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def within(value: str, limit: int) -> str:
    """Build an SQL number that is NULL if it exceeds a limit in magnitude; ``value`` is trusted."""
    return f"CASE WHEN {value} BETWEEN {-limit} AND {limit} THEN {value} END"


def all_within(value: str, limit: int) -> str:
    """Build an SQL list that is NULL if a number in it exceeds a limit; ``value`` is trusted."""
    beyond = f"list_filter({value}, lambda x: x NOT BETWEEN {-limit} AND {limit})"
    return f"CASE WHEN len({beyond}) = 0 THEN {value} END"


def of_form(value: str, form: str) -> str:
    """Build an SQL string that is NULL unless it matches a form; both are trusted."""
    return f"CASE WHEN has_form_{form}({value}) THEN {value} END"


def has_form_macro(form: str, pattern: str, limit: int | None, *, is_json: bool) -> str:
    """Build the macro that tests whether a string matches a form.

    Args:
        form: Name of the form, trusted.
        pattern: Regular expression for the whole string, quoted here.
        limit: Maximum size of the string [bytes], or None.
        is_json: Whether the string must be JSON.
    """
    valid = " AND json_valid(value)" if is_json else ""
    short = "" if limit is None else f"strlen(value) <= {limit} AND "
    test = f"{short}regexp_full_match(value, {literal(pattern)}){valid}"
    return f"CREATE OR REPLACE MACRO has_form_{form}(value) AS {test}"


def old_spelling(argument: str, kind: str, categories: Iterable[str], whole_keys: str) -> str:
    """Build the SQL for the value of an argument under its old name, used by some categories.

    The value is read by JSON path, because field names in a struct must differ in more than case.

    Args:
        argument: Old name of the argument, quoted here.
        kind: Type of the argument, trusted.
        categories: Event categories that use the old name, quoted here.
        whole_keys: The old name again if the argument is an integer, otherwise empty; quoted here.
    """
    path = literal(pointer(argument))
    wanted = " OR ".join(f"d.cat = {literal(category)}" for category in categories)
    args = f"exact_args(d.args, {literal(whole_keys)})" if whole_keys else "d.args"
    return f"CASE WHEN {wanted} THEN TRY_CAST({args} ->> {path} AS {kind}) END"
