"""Random queries with nested WITH clauses, and the names that are visible at each position.

Run as a program: ``python -m tests.safety.scope_fuzz STORE SECONDS SEED``. WITH queries are named
like system views, like files, like tables of the store, or with unknown names. A query that uses an
invisible name must be refused. Any other query must pass, and its plan on an unlocked catalog must
only read visible relations.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import duckdb

from hta_sql.errors import QueryError
from hta_sql.store.query.sandbox import Sandbox

STORED = ("runs", "gpu_ops", "main.ranks")
SYSTEM = ("pg_settings", "duckdb_databases", "sqlite_master", "PG_Settings")
NOWHERE = ("a", "b", "my spans")
FILES = ("secret.csv", "/outside/secret.csv", "pg_catalog.pg_settings", '"pg_settings"')
"""Names that are never visible, because the engine may treat them as paths or unquoted names."""
NAMES = (*SYSTEM, *SYSTEM, *NOWHERE, *FILES, "runs", "gpu_ops")
HEADS = ("EXPLAIN ", "EXPLAIN ANALYZE ", "EXPLAIN (FORMAT json) ")
DEPTH = 5
_HEAD = re.compile(r"^\s*EXPLAIN( ANALYZE| \(FORMAT json\))? ")

Seen = frozenset[str]
Way = Callable[[Seen, int], str]


def quoted(name: str) -> str:
    """Quote an identifier."""
    return '"' + name.replace('"', '""') + '"'


@dataclass
class Writer:
    """Generator of one query.

    Attributes:
        chance: Source of randomness.
        stray: Probability that a name is chosen without regard to visibility.
        is_refused: Whether an invisible name was written.
    """

    chance: random.Random
    stray: float
    is_refused: bool = False

    def query(self, seen: Seen, depth: int = 0) -> str:
        """Return a query with one column ``v`` that contains only ones."""
        ways: list[Way] = [self.leaf, self.read, self.read, self.passed]
        if depth < DEPTH:
            ways += [self.named, self.named, self.recursive, self.united, self.nested]
            ways += [self.computed, self.filtered, self.lateral, self.described]
        return self.chance.choice(ways)(seen, depth + 1)

    def name(self, seen: Seen) -> str:
        """Return a visible name, or occasionally an arbitrary one."""
        if self.chance.random() < self.stray:
            name = self.chance.choice(NAMES)
            if name not in STORED and (name in FILES or name.lower() not in seen):
                self.is_refused = True
            return name
        return self.chance.choice(sorted({*seen, *STORED}))

    def leaf(self, _seen: Seen, _depth: int) -> str:
        """Return a query without a relation."""
        return "SELECT 1 AS v"

    def read(self, seen: Seen, _depth: int) -> str:
        """Return a query that reads from a name."""
        name = self.name(seen)
        if name in seen or name.lower() in seen:
            return f"SELECT v FROM {quoted(name)}"
        written = name if "." in name and name in STORED else quoted(name)
        return f"SELECT 1 AS v FROM {written}"

    def passed(self, seen: Seen, _depth: int) -> str:
        """Return a query that passes a name as a string."""
        name = self.name(seen)
        text = name.replace("'", "''")
        what = self.chance.choice((f"'{text}'", f"['{text}']"))
        column = "v" if name.lower() in seen else "1 AS v"
        return f"SELECT {column} FROM query_table({what})"

    def named(self, seen: Seen, depth: int) -> str:
        """Return a query with one to three WITH queries, each of which sees the preceding ones."""
        word = self.chance.choice(("WITH", "WITH", "WITH RECURSIVE"))
        taken: set[str] = set()
        parts = []
        for _ in range(self.chance.randint(1, 3)):
            name = self.chance.choice(NAMES)
            if name.lower() in taken:
                continue
            taken.add(name.lower())
            hint = self.chance.choice(("", "MATERIALIZED ", "NOT MATERIALIZED "))
            body = self.query(seen, depth)
            if word == "WITH RECURSIVE":  # a bare UNION would be a recursive query
                body = f"SELECT v FROM ({body})"
            parts.append(f"{quoted(name)} AS {hint}({body})")
            seen = shown(seen, name)
        return f"{word} {', '.join(parts)} {self.bare(seen, depth)}"

    def bare(self, seen: Seen, depth: int) -> str:
        """Return a query that may follow a WITH clause without brackets."""
        return self.chance.choice((self.read, self.united, self.nested, self.filtered))(seen, depth)

    def recursive(self, seen: Seen, depth: int) -> str:
        """Return a recursive query, whose name is visible only after its UNION."""
        name = self.chance.choice((*SYSTEM, *NOWHERE))
        first = f"({self.query(seen, depth)})"
        inside = shown(seen, name)
        if self.chance.random() < 0.5:
            second = f"SELECT v FROM {quoted(name)}"
        else:
            second = f"(SELECT v FROM {quoted(name)} UNION ALL {self.enclosed(inside, depth)})"
        recursive = f"{quoted(name)}(v) AS ({first} UNION {second})"
        return f"WITH RECURSIVE {recursive} {self.bare(inside, depth)}"

    def enclosed(self, seen: Seen, depth: int) -> str:
        """Return a query in brackets."""
        return f"({self.query(seen, depth)})"

    def united(self, seen: Seen, depth: int) -> str:
        """Return a set operation on two queries that do not see each other's names."""
        word = self.chance.choice(("UNION ALL", "UNION", "INTERSECT", "UNION ALL BY NAME"))
        return f"{self.enclosed(seen, depth)} {word} {self.enclosed(seen, depth)}"

    def nested(self, seen: Seen, depth: int) -> str:
        """Return a query that reads from a subquery, and sometimes also from a name."""
        beside = f", ({self.read(seen, depth)}) AS u" if self.chance.random() < 0.5 else ""
        return f"SELECT t.v FROM ({self.query(seen, depth)}) AS t{beside}"

    def computed(self, seen: Seen, depth: int) -> str:
        """Return a SELECT list with subqueries."""
        one = f"(SELECT max(v) FROM ({self.query(seen, depth)}))"
        return f"SELECT greatest({one}, (SELECT max(v) FROM ({self.read(seen, depth)}))) AS v"

    def filtered(self, seen: Seen, depth: int) -> str:
        """Return a query with a subquery in WHERE, ORDER BY or LIMIT."""
        clause = self.chance.choice(
            (
                "SELECT 1 AS v WHERE EXISTS ({})",
                "SELECT 1 AS v ORDER BY (SELECT max(v) FROM ({}))",
                "SELECT 1 AS v LIMIT (SELECT count(*) FROM ({}))",
                "SELECT 1 AS v WHERE 1 IN ({})",
            )
        )
        return clause.format(self.query(seen, depth))

    def lateral(self, seen: Seen, depth: int) -> str:
        """Return a query with a lateral subquery."""
        return f"SELECT u.v FROM (SELECT 1) AS t, LATERAL ({self.query(seen, depth)}) AS u"

    def described(self, seen: Seen, depth: int) -> str:
        """Return a DESCRIBE of a query, or a SHOW, which does not see the names of WITH queries."""
        if self.chance.random() < 0.3:
            name = self.name(seen)
            self.is_refused |= name not in STORED
            return f"SELECT 1 AS v FROM (SHOW {name if name in STORED else quoted(name)})"
        return f"SELECT 1 AS v FROM (DESCRIBE {self.query(seen, depth)})"


def shown(seen: Seen, name: str) -> Seen:
    """Return the names that are visible after the definition of a name."""
    return seen if name in FILES else seen | {name.lower()}


def written(seed: int) -> tuple[str, bool]:
    """Return a query, and whether it must be refused."""
    chance = random.Random(seed)
    writer = Writer(chance, stray=chance.choice((0.0, 0.1, 0.5)))
    head = chance.choice(HEADS) if chance.random() < 0.2 else ""
    return head + writer.query(frozenset()), writer.is_refused


def fuzz(
    con: duckdb.DuckDBPyConnection, sandbox: Sandbox, seconds: float, count: int, seed: int
) -> Counter[str]:
    """Check random queries, and plan those that pass, up to a time limit or a number.

    The catalog is not locked, so the plan could read system views.

    Returns:
        Number of queries by outcome.

    Raises:
        AssertionError: A query passed or was refused although the opposite was expected.
    """
    told: Counter[str] = Counter()
    until = time.monotonic() + seconds
    while sum(told.values()) < count and time.monotonic() < until:
        text, is_refused = written(seed)
        checked, error = _checked(sandbox, con, text)
        is_large = "too l" in error or "nested too" in error
        assert bool(error) == is_refused or is_large, f"seed {seed}: {error}: {text}"
        if not error:
            error = _failure(con, checked)
            # A relation other than a WITH query would have no column ``v``.
            assert "does not exist" not in error, f"seed {seed}: {error}: {text}"
            assert "not found" not in error, f"seed {seed}: {error}: {text}"
            told["failed" if error else "passed"] += 1
        else:
            told["too large" if is_large else "refused"] += 1
        seed += 1
    return told


def _checked(sandbox: Sandbox, con: duckdb.DuckDBPyConnection, text: str) -> tuple[str, str]:
    try:
        return sandbox.validated(con, text), ""
    except QueryError as error:
        return "", str(error)


def _failure(con: duckdb.DuckDBPyConnection, query: str) -> str:
    """Plan a query to resolve its names, and return the error. Running it may take hours."""
    try:
        con.execute(f"EXPLAIN {_HEAD.sub('', query)}").fetchall()
    except duckdb.Error as error:
        return str(error)
    return ""


if __name__ == "__main__":
    with duckdb.connect(f"{sys.argv[1]}/catalog.duckdb", read_only=True) as opened:
        opened.execute("SET python_enable_replacements = false")
        found = fuzz(opened, Sandbox(opened), float(sys.argv[2]), 10**9, int(sys.argv[3]))
    sys.stdout.write("".join(f"{number:8,} {how}\n" for how, number in sorted(found.items())))
