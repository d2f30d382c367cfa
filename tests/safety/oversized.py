"""Test data for the sandbox: queries that would crash the engine or keep it busy."""

from __future__ import annotations

from collections.abc import Callable

Written = Callable[[int], str]


def around(head: str, opens: str, inner: str, closes: str, tail: str = "") -> Written:
    """Return a function that builds a query with a fragment nested n times."""
    return lambda n: head + opens * n + inner + closes * n + tail


def behind(head: str, part: str, tail: str = "") -> Written:
    """Return a function that builds a query with a fragment repeated n times."""
    return lambda n: head + part * n + tail


def named(first: str, part: str, last: str, hint: str = "") -> Written:
    """Return a function that builds n WITH queries, each reading from the previous one."""
    return lambda n: (
        f"WITH a0 AS {hint}({first})"
        + "".join(f", a{i + 1} AS {hint}({part.replace('{}', f'a{i}')})" for i in range(n))
        + last.replace("{}", f"a{n}")
    )


NESTED: dict[str, Written] = {
    "brackets": around("SELECT ", "(", "1", ")"),
    "lists": around("SELECT ", "[", "1", "]"),
    "structs": around("SELECT ", "{'a': ", "1", "}"),
    "maps": around("SELECT ", "MAP {1: ", "1", "}"),
    "calls": around("SELECT ", "abs(", "1", ")"),
    "CASE WHEN": around("SELECT ", "CASE WHEN true THEN ", "1", " END"),
    "WHEN CASE": around("SELECT ", "CASE WHEN ", "true", " THEN true END"),
    "NOT": behind("SELECT ", "NOT ", "true"),
    "minus": behind("SELECT ", "- ", "1"),
    "at": behind("SELECT ", "@ ", "1"),
    "plus": behind("SELECT 1", "+1"),
    "||": behind("SELECT 'a'", "||'a'"),
    "dots": behind("SELECT a", ".a", " FROM (SELECT 1 AS a)"),
    "casts": behind("SELECT 1", "::INT"),
    "arrows": behind("SELECT 'x'", "->'a'"),
    "lambda arrows": behind("SELECT list_transform([1], ", "x -> ", "1)"),
    "methods": behind("SELECT 'a'", ".upper()"),
    "subscripts": behind("SELECT [1]", "[1]"),
    "IS NULL": behind("SELECT 1", " IS NULL"),
    "IN": around("SELECT ", "1 IN (", "1", ")"),
    "EXISTS": around("SELECT ", "EXISTS (SELECT ", "1", ")"),
    "scalar subqueries": around("SELECT ", "(SELECT ", "1", ")"),
    "FROM": around("", "FROM (", "SELECT 1", ")"),
    "LATERAL": around("FROM ", "LATERAL (FROM ", "range(1)", ")"),
    "functions behind FROM": around("FROM ", "range((SELECT 1 FROM ", "range(1)", "))"),
    "joins": behind("FROM range(1)", " CROSS JOIN range(1)"),
    "commas behind FROM": behind("FROM range(1)", ", range(1)"),
    "EXCEPT": behind("SELECT 1", " EXCEPT SELECT 1"),
    "UNION": behind("SELECT 1", " UNION ALL SELECT 1"),
    "UNION to the right": around("SELECT 1 UNION (", "SELECT 1 UNION (", "SELECT 1", ")", ")"),
    "WITH": around("", "WITH a AS (", "SELECT 1", ") FROM a"),
    "DESCRIBE": behind("", "DESCRIBE ", "SELECT 1"),
    "SUMMARIZE": around("", "FROM (SUMMARIZE ", "FROM runs", ")"),
    "PIVOT": behind("FROM (SELECT 1 AS a)", " PIVOT (count(*) FOR a IN (1))"),
    "LIMIT": around("SELECT 1 LIMIT (", "SELECT 1 LIMIT (", "1", ")", ")"),
    "GROUPING SETS": around("SELECT 1 FROM range(1) t(a) GROUP BY ", "GROUPING SETS (", "a", ")"),
    "types": behind("SELECT NULL::INT", "[]"),
    "structs of structs": around("SELECT NULL::", "STRUCT(a ", "INT", ")"),
    "names of WITH": named("SELECT 1 AS b", "FROM {}", " FROM {}"),
    "columns": behind("SELECT 1", ", 1"),
    "constants": behind("SELECT 1 IN (1", ", 1", ")"),
    "a long text": lambda n: f"SELECT '{'a' * 2 * n}'",
    "a long comment": lambda n: f"SELECT 1 /*{'*' * 2 * n}*/",
}
"""Nested construct ─▶ its query; at 100,000 levels it crashes or blocks the parser."""

BROKEN: dict[str, Written] = {
    "open brackets": behind("SELECT ", "("),
    "open FROM": behind("", "FROM ("),
    "statements": behind("SELECT 1", "; SELECT 1"),
    "texts": behind("SELECT ", "$a$ "),
    "comments": behind("SELECT 1 ", "/*"),
}
"""Repeated fragments that form an invalid query."""

COPYING: dict[str, Written] = {
    "CASE in CASE": around(
        "SELECT ", "CASE ", "1", " WHEN 1 THEN 1 WHEN 2 THEN 2 WHEN 3 THEN 3 END"
    ),
    "an error in WITH": around("", "WITH a AS (", "SELECT 1 1 1", ") FROM a"),
    "an open WITH": behind("", "WITH a AS ("),
    "BETWEEN": around("SELECT ", "(", "true", " BETWEEN false AND true)"),
    "lambda in lambda": around("SELECT ", "list_transform([1], lambda x: ", "1", ")"),
    "list in list": around("SELECT ", "[", "1", " FOR x IN [1]]"),
    "macros": around("SELECT ", "array_pop_back(", "[1]", ")"),
    "nullif": around("SELECT ", "nullif(", "1", ", 2)"),
    "aliases": lambda n: "SELECT 1 AS a0" + "".join(f", a{i}+a{i} AS a{i + 1}" for i in range(n)),
    "names of WITH": named(
        "SELECT 1 AS b", "SELECT x.b FROM {} x, {} y", " FROM {}", "NOT MATERIALIZED "
    ),
    "columns": around("FROM ", "(SELECT *, * FROM ", "runs", ")"),
    "PIVOT": lambda n: f"PIVOT (SELECT 1 AS a) ON {', '.join(['a IN (1, 2)'] * n)} USING count(*)",
    "CUBE": behind("SELECT 1 FROM range(1) t(a) GROUP BY CUBE (a", ", a", ")"),
    "LIMIT": around("SELECT 1 LIMIT (", "SELECT 1 LIMIT (", "1", ")", ")"),
}
"""Constructs whose cost at least doubles at each level, so that 15 to 25 levels take too long."""

DEEP = "repeat('[', 100000) || repeat(']', 100000)"

RECURSING = [
    f"SELECT json_contains({DEEP}, {DEEP})",
    f"SELECT ({DEEP})::JSON::VARIANT",
    f"SELECT ({DEEP})::JSON[]::VARIANT",
    f"SELECT CAST({DEEP} AS variant)",
    f"SELECT TRY_CAST(({DEEP})::JSON AS system.main.VARIANT)",
    f"SELECT ({DEEP})::JSON::STRUCT(a VARIANT[])",
    f"SELECT variant_typeof(({DEEP})::JSON)",
    f"SELECT json_transform('[]', {DEEP})",
    f"SELECT json_transform_strict('[]', {DEEP})",
    f"SELECT from_json('[]', {DEEP})",
    "SELECT from_json_strict('[]', repeat('[', 20000) || repeat(']', 20000))",
    "SELECT from_json('[]', (SELECT string_agg('[', '') FROM range(100000)))",
    "SELECT from_json('[]', $structure)",
    f"SELECT from_json('[]', '{'[' * 2000}')",
    "SELECT levenshtein(repeat('a', 100000), repeat('b', 100000))",
    "SELECT damerau_levenshtein(repeat('a', 100000), repeat('b', 100000))",
]
"""Functions and casts that recurse into a value, or compare strings character by character."""

LARGE_BUT_ORDINARY = [
    f"SELECT count(*) FROM gpu_ops WHERE event_id IN ({', '.join(map(str, range(4000)))})",
    named("SELECT dur AS b FROM gpu_ops", "SELECT b + 1 AS b FROM {}", " SELECT sum(b) FROM {}")(
        30
    ),
    "SELECT 1 AS a" + " UNION ALL SELECT 1" * 100,
    "SELECT " + " || ".join(["name"] * 100) + " FROM gpu_ops LIMIT 1",
    "SELECT " + ", ".join(["NULL"] * 500),
    "SELECT " + ", ".join(f"dur + {i} AS d{i}" for i in range(500)) + " FROM gpu_ops LIMIT 1",
    "SELECT CASE rank " + " ".join(f"WHEN {i} THEN {i}" for i in range(300)) + " END FROM ranks",
    "FROM gpu_ops WHERE " + " OR ".join(f"name = 'kernel {i}'" for i in range(1000)),
    around("", "FROM (", "FROM runs", ")")(20),
    around("", "WITH a AS (", "FROM runs", ") FROM a")(4),
    "SELECT from_json('[[1, 2]]', '[[\"BIGINT\"]]'), json_transform('{\"a\": 1}', '{\"a\": \"INT\"}')",
    "SELECT rank, grouping(rank, stream) FROM gpu_ops GROUP BY CUBE (rank, stream, class)",
    f"SELECT '{'a' * 50_000}'",
]
"""Large queries of the kind that people and programs actually write."""
