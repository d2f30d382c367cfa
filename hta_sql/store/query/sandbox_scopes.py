"""Scopes of a query: the WITH names that are visible to a node, and the sizes of their queries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from hta_sql.errors import QueryError

MOST_NODES = 20_000
"""Maximum number of expressions, including copies that the engine makes."""
MOST_RELATIONS = 500
"""Maximum number of tables, subqueries, joins and UNION branches, including copies."""
MOST_DEEP = 200
"""Maximum nesting depth; a WITH name counts as its query."""
MOST_QUERIES = 50
"""Maximum nesting depth of queries; a WITH name counts as its query."""
MOST_COLUMNS = 10_000
"""Maximum number of columns of a query; a table counts as 50 columns."""

_PLAIN = re.compile(r"[\w $-]+")
"""Pattern of WITH names that cannot be mistaken for a quoted relation or a file path."""


@dataclass(frozen=True, slots=True)
class Size:
    """Cost of binding and planning a part of a query.

    The limits were measured on DuckDB 2.0 with a stack of 512 KiB, a sixteenth of a thread's stack
    on Linux. Binding and planning crash at 600 nested expressions, 200 to 600 joins or 60 to 150
    nested queries. Regardless of the stack size, 24 nested BETWEEN, lambdas or macros that repeat
    an argument take longer than 8 s.
    """

    nodes: int = 0
    relations: int = 0
    depth: int = 0
    queries: int = 0
    columns: int = 0

    def beside(self, other: Size) -> Size:
        """Return the combined size of two parts that do not contain each other."""
        return Size(
            self.nodes + other.nodes,
            self.relations + other.relations,
            max(self.depth, other.depth),
            max(self.queries, other.queries),
            max(self.columns, other.columns),
        )

    def check(self) -> None:
        """Check that the engine can bind and plan the query quickly and without a stack overflow.

        Raises:
            QueryError: The size exceeds a limit.
        """
        for count, most, what in (
            (self.nodes, MOST_NODES, "expressions, including copies that the engine makes"),
            (self.relations, MOST_RELATIONS, "tables, subqueries and joins"),
            (self.depth, MOST_DEEP, "levels of nesting"),
            (self.queries, MOST_QUERIES, "nested queries"),
            (self.columns, MOST_COLUMNS, "columns"),
        ):
            if count > most:
                raise QueryError(f"The query is too large: more than {most:,} {what}.")


EMPTY = Size()


@dataclass(frozen=True)
class Scope:
    """The names visible to a node of a query, in lower case.

    Attributes:
        queries: WITH names, including those of the enclosing queries.
        recurring: Names of the recursive queries that contain the node.
        aliases: Columns that the enclosing SELECT computes.
        width: Number of columns that ``*`` expands to.
    """

    queries: Mapping[str, Size] = field(default_factory=lambda: MappingProxyType({}))
    recurring: frozenset[str] = frozenset()
    aliases: Mapping[str, Size] = field(default_factory=lambda: MappingProxyType({}))
    width: int = 0

    def sees(self, name: tuple[str, ...]) -> bool:
        """Return whether a name is a WITH query, or ``recurring`` data of a recursive query."""
        return (len(name) == 1 and name[0] in self.queries) or (
            len(name) == 2 and name[0] == "recurring" and name[1] in self.recurring
        )

    def with_query(self, name: str, size: Size) -> Scope:
        """Return the scope after the definition of a WITH name.

        A name that may be a path or need quotes is not added, because query_table would parse it
        differently.
        """
        if not _PLAIN.fullmatch(name):
            return self
        return replace(self, queries={**self.queries, small(name): size})

    def within(self, name: str) -> Scope:
        """Return the scope of the part of a recursive query that can refer to the query itself."""
        inside = self.with_query(name, EMPTY)
        return replace(inside, recurring=self.recurring | {small(name)})


def small(name: str) -> str:
    """Convert a name to lower case as the engine does: ASCII letters only."""
    if name.isascii():
        return name.lower()
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)
