"""Random queries from a grammar, each with the expected verdict of the sandbox.

Run as a program: ``python -m tests.safety.sandbox_fuzz STORE SECONDS SEED``. A query with a
forbidden part must be refused with an error that the library defines. Any other query may be
refused in the same way or answered. No file may change.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial

import duckdb

import hta_sql
from hta_sql.errors import QueryError
from hta_sql.store.query.limits import Limits
from hta_sql.store.query.sandbox import Sandbox
from tests.safety.escapes import CALLING, READING, WRITING

BETWEEN = (
    " ",
    "\n",
    "\t ",
    " /* */ ",
    "/* ' */",
    ' /* " */ ',
    " -- '\n",
    " -- /*\n",
    "/*;*/",
    " /* -- */ ",
)
RELATIONS = (
    "runs",
    "gpu_ops",
    "main.cpu_ops",
    "stored.ranks",
    "us.gpu_ops",
    "range(3)",
    "analyses",
)
MORE_RELATIONS = ("(VALUES (1), (2))", "temporal_breakdown()", "unnest([1, 2])", '"gpu_ops"')
VALUES = (
    "1",
    "'a'",
    "NULL",
    "'read_csv(''x'')'",
    "count(*)",
    "1 + 1",
    "upper('a')",
    "[1, 2]",
    "{'a': 1}",
)
MORE_VALUES = (
    "'-- /* '",
    "'\"'",
    "$$;COPY$$",
    "CASE WHEN true THEN 1 END",
    "1::VARCHAR",
    "abs(-1)",
)
HEADS = (
    "EXPLAIN",
    "EXPLAIN ANALYZE",
    "EXPLAIN (ANALYZE)",
    "DESCRIBE",
    "SUMMARIZE",
    "EXPLAIN (FORMAT JSON)",
)
DEPTH = 4


@dataclass
class Writer:
    """Generator of one query.

    Attributes:
        chance: Source of randomness.
        live: Whether a forbidden part must still be inserted.
    """

    chance: random.Random
    live: bool

    def query(self, depth: int = 0) -> list[str]:
        """Return the tokens of a random query."""
        ways = [self.selected, self.read]
        if depth < DEPTH:
            ways += [self.named, self.united, self.nested, self.filtered, self.listed]
        return self.chance.choice(ways)(depth + 1)

    def selected(self, depth: int) -> list[str]:
        """Return a query that computes a value."""
        return ["SELECT", *self.value(depth)]

    def read(self, depth: int) -> list[str]:
        """Return a query that reads from a relation."""
        return ["FROM", *self.relation(depth)]

    def named(self, depth: int) -> list[str]:
        """Return a query with a WITH clause, which the main query reads or ignores."""
        hint = self.chance.choice((["MATERIALIZED"], ["NOT", "MATERIALIZED"], []))
        inner = self.query(depth)
        return [
            "WITH",
            "x",
            "AS",
            *hint,
            "(",
            *inner,
            ")",
            "FROM",
            self.chance.choice(("x", "runs")),
        ]

    def united(self, depth: int) -> list[str]:
        """Return a set operation on two queries."""
        word = self.chance.choice(
            ("UNION ALL", "UNION", "EXCEPT", "INTERSECT", "UNION ALL BY NAME")
        )
        return ["(", *self.query(depth), ")", word, "(", *self.query(depth), ")"]

    def nested(self, depth: int) -> list[str]:
        """Return a query with a subquery in FROM."""
        return ["FROM", "(", *self.query(depth), ")", "AS", "t"]

    def filtered(self, depth: int) -> list[str]:
        """Return a query with a subquery in WHERE, ORDER BY, LIMIT, HAVING or QUALIFY."""
        clause = self.chance.choice(
            ("WHERE EXISTS", "ORDER BY", "LIMIT", "HAVING 1 =", "QUALIFY 1 =")
        )
        return ["FROM", "runs", clause, "(", *self.query(depth), ")"]

    def listed(self, depth: int) -> list[str]:
        """Return a query with a list comprehension."""
        return ["SELECT", "[", *self.value(depth), "FOR", "y", "IN", "[1, 2]", "]"]

    def value(self, depth: int) -> list[str]:
        """Return an expression."""
        if self.live and self.chance.random() < 0.5:
            self.live = False
            return [self.chance.choice(CALLING)]
        if depth < DEPTH and self.chance.random() < 0.3:
            return ["(", *self.query(depth), ")"]
        return [self.chance.choice((*VALUES, *MORE_VALUES))]

    def relation(self, depth: int) -> list[str]:
        """Return a relation for FROM."""
        if self.live and self.chance.random() < 0.5:
            self.live = False
            return [addressed(self.chance.choice(READING))]
        if depth < DEPTH and self.chance.random() < 0.2:
            return ["(", *self.query(depth), ")"]
        return [self.chance.choice((*RELATIONS, *MORE_RELATIONS))]


def addressed(text: str) -> str:
    """Replace the folder placeholders in a query."""
    return text.replace("{outside}", "/outside").replace("{store}", "/outside/job.store")


def written(chance: random.Random) -> tuple[str, bool]:
    """Return a query, and whether it must be refused."""
    if chance.random() < 0.1:
        tokens, has = [addressed(chance.choice(WRITING))], True
    else:
        wanted = chance.random() < 0.6
        writer = Writer(chance, wanted)
        tokens = writer.query()
        has = wanted and not writer.live
    if chance.random() < 0.3:
        tokens = [chance.choice(HEADS), *tokens]
    if chance.random() < 0.1:
        tokens, has = [*tokens, ";", "SELECT 1"], True
    text = "".join(f"{token}{chance.choice(BETWEEN)}" for token in tokens)
    case = chance.choice((str, str, str.swapcase))
    return (case(text) if "'" not in text and '"' not in text and "$" not in text else text), has


def fuzz(
    store: hta_sql.TraceStore, seconds: float, count: int, seed: int, *, asks: bool = True
) -> Counter[str]:
    """Check random queries, and run those that should pass, up to a time limit or a number.

    Returns:
        Number of queries by outcome.

    Raises:
        AssertionError: A forbidden query passed.
    """
    told: Counter[str] = Counter()
    until = time.monotonic() + seconds
    sandbox = store._connection.opened().sandbox
    assert sandbox
    while sum(told.values()) < count and time.monotonic() < until:
        chance = random.Random(seed)
        text, has = written(chance)
        try:
            if has or not asks:
                store._connection.run(partial(_checked, sandbox, text))
                assert not has, f"seed {seed}: {text}"
            else:
                store.sql(text)
            told["passed"] += 1
        except QueryError as error:
            allowed = not has and "Only read-only queries" in str(error)
            told["refused" if has else "refused, harmless" if allowed else "failed"] += 1
        seed += 1
    return told


def _checked(sandbox: Sandbox, text: str, con: duckdb.DuckDBPyConnection) -> str:
    return sandbox.validated(con, text)


if __name__ == "__main__":
    with hta_sql.TraceStore(sys.argv[1], safe=True, limits=Limits(seconds=20)) as opened:
        found = fuzz(opened, float(sys.argv[2]), 10**9, int(sys.argv[3]))
    sys.stdout.write("".join(f"{count:8,} {how}\n" for how, count in sorted(found.items())))
