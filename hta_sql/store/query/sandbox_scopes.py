"""Which names of WITH a place in a query sees, and how large the query is behind each of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from hta_sql.errors import QueryError

MOST_NODES = 20_000
"""Expressions of a query, each as often as the engine copies it."""
MOST_RELATIONS = 500
"""Tables, subqueries, joins and branches of UNION, likewise."""
MOST_DEEP = 200
"""Expressions, relations and queries that are nested; a name of WITH is as deep as its query."""
MOST_QUERIES = 50
"""Queries that are nested, likewise."""
MOST_COLUMNS = 10_000
"""Columns of a query, where a table counts as 50."""

_PLAIN = re.compile(r"[\w $-]+")
"""Names of WITH that no relation of the engine and no file has in quotes or as a path."""


@dataclass(frozen=True, slots=True)
class Size:
    """What a part of a query costs the engine to bind and plan.

    Measured on DuckDB 2.0 with a stack of 512 KiB, a sixteenth of what a thread has on Linux: binding
    and planning die of 600 nested expressions, 200 to 600 joins or 60 to 150 nested queries. Twenty-four nested
    BETWEEN, lambdas or macros that repeat an argument take longer than 8 s on any stack.
    """

    nodes: int = 0
    relations: int = 0
    depth: int = 0
    queries: int = 0
    columns: int = 0

    def beside(self, other: Size) -> Size:
        """Return the size of two parts of which neither is in the other."""
        return Size(
            self.nodes + other.nodes,
            self.relations + other.relations,
            max(self.depth, other.depth),
            max(self.queries, other.queries),
            max(self.columns, other.columns),
        )

    def check(self) -> None:
        """Check that the engine binds and plans it quickly and without running out of stack.

        Raises:
            QueryError: It exceeds a bound.
        """
        for count, most, what in (
            (self.nodes, MOST_NODES, "expressions, with those that the engine copies"),
            (self.relations, MOST_RELATIONS, "tables, subqueries and joins"),
            (self.depth, MOST_DEEP, "levels of nesting"),
            (self.queries, MOST_QUERIES, "queries that are nested"),
            (self.columns, MOST_COLUMNS, "columns"),
        ):
            if count > most:
                raise QueryError(f"The query is too large: more than {most:,} {what}.")


EMPTY = Size()


@dataclass(frozen=True)
class Scope:
    """The names that a place in a query sees, in small letters.

    Attributes:
        queries: Names of WITH, those of the enclosing queries too.
        recurring: Names of recursive queries that the place is a part of.
        aliases: Names of columns that the enclosing SELECT computes.
        width: Columns that * stands for.
    """

    queries: Mapping[str, Size] = field(default_factory=lambda: MappingProxyType({}))
    recurring: frozenset[str] = frozenset()
    aliases: Mapping[str, Size] = field(default_factory=lambda: MappingProxyType({}))
    width: int = 0

    def sees(self, name: tuple[str, ...]) -> bool:
        """Return whether a relation is a query of WITH, or the recursive one as it grows."""
        return (len(name) == 1 and name[0] in self.queries) or (
            len(name) == 2 and name[0] == "recurring" and name[1] in self.recurring
        )

    def with_query(self, name: str, size: Size) -> Scope:
        """Return the scope behind the definition of a name.

        A name that might be a path or be quoted stays unknown: query_table reads a text otherwise.
        """
        if not _PLAIN.fullmatch(name):
            return self
        return replace(self, queries={**self.queries, small(name): size})

    def within(self, name: str) -> Scope:
        """Return the scope of that part of a recursive query that sees the query itself."""
        inside = self.with_query(name, EMPTY)
        return replace(inside, recurring=self.recurring | {small(name)})


def small(name: str) -> str:
    """Write a name in small letters as the engine does: of ASCII alone."""
    if name.isascii():
        return name.lower()
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)
