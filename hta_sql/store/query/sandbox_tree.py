"""Checks every node of an untrusted query's syntax tree, tracking the names visible to the node.

The tree comes from the engine (``json_serialize_sql``). A WITH name is visible in the later queries
of the same WITH and in its main query, including everything nested in them. The name of a recursive
query refers to the query itself only in its second part; in its first part, the same name refers to
a different relation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import Any, Protocol

from hta_sql.store.query.sandbox_scopes import EMPTY, Scope, Size, small

Node = dict[str, Any]

COPIES = 3
"""Maximum number of times that the engine binds a lambda body or the operand of BETWEEN."""
GROUPING = 4
"""Number of relations that a set of CUBE, ROLLUP or GROUPING SETS counts as (4 ms to plan)."""
TABLE_COLUMNS = 50
"""Number of columns that a table or table function counts as."""

_SOURCES = {
    "BASE_TABLE",
    "EXPRESSION_LIST",
    "JOIN",
    "PIVOT",
    "SHOW_REF",
    "SUBQUERY",
    "TABLE_FUNCTION",
}


_LIMITS = {"LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"}


class Checks(Protocol):
    """Callbacks that check the nodes of a tree and know how functions use their arguments."""

    def check_node(self, node: Node, scope: Scope) -> None:
        """Check a node."""

    def check_table_function(self, function: Node, scope: Scope) -> None:
        """Check a table function."""

    def repeats(self, function: Node) -> int:
        """Return the maximum number of times that a function repeats an argument."""


class TreeWalk:
    """Walks a syntax tree, checking its nodes and computing its size.

    Args:
        checks: Callbacks for the nodes.
    """

    def __init__(self, checks: Checks) -> None:
        self._checks = checks

    def check(self, statements: list[Node]) -> None:
        """Check all nodes and the total size of the query.

        Raises:
            QueryError: A node is not allowed, or the query is too large.
        """
        self._sum(statements, Scope()).check()

    def _sum(self, items: Iterable[Any], scope: Scope) -> Size:
        """Check all nodes in items (objects, lists or values of the tree); return their size."""
        total = EMPTY
        waiting = [*items]
        while waiting:
            item = waiting.pop()
            if isinstance(item, list):
                waiting += item
            elif isinstance(item, dict):
                if "class" in item or isinstance(item.get("type"), str):
                    total = total.beside(self._size(item, scope))
                else:
                    waiting += item.values()
        return total

    def _size(self, node: Node, scope: Scope) -> Size:
        """Check a node and its descendants; return their total size."""
        if "cte_map" in node:
            return self._query(node, scope)
        if node["type"] == "TABLE_FUNCTION":
            self._checks.check_table_function(node["function"], scope)
            return self._source(node, self._sum(node["function"].values(), scope), scope)
        self._checks.check_node(node, scope)
        if node["type"] == "JOIN":
            return self._join(node, scope)
        inner = self._sum(node.values(), scope)
        if "class" in node:
            return self._expression(node, inner, scope)
        if node["type"] in _LIMITS:  # bound twice, including nested queries
            return replace(inner, nodes=2 * inner.nodes, relations=2 * inner.relations)
        return self._source(node, inner, scope) if node["type"] in _SOURCES else inner

    def _join(self, node: Node, scope: Scope) -> Size:
        left, right = (self._size(node[side], scope) for side in ("left", "right"))
        rest = self._sum((v for k, v in node.items() if k not in ("left", "right")), scope)
        both = rest.beside(left).beside(right)
        return self._source(node, replace(both, columns=left.columns + right.columns), scope)

    def _query(self, node: Node, scope: Scope) -> Size:
        """Check a query: its WITH queries first, then the rest with their names in scope."""
        self._checks.check_node(node, scope)
        total = EMPTY
        for entry in node["cte_map"].get("map", ()):
            named = self._sum([entry["value"]], scope)
            total = total.beside(named)
            if entry["value"].get("materialized") != "CTE_MATERIALIZE_NEVER":
                named = replace(named, nodes=0, relations=0)
            scope = scope.with_query(entry["key"], named)
        rest = {key: value for key, value in node.items() if key != "cte_map"}
        if node["type"] == "RECURSIVE_CTE_NODE":
            total = total.beside(self._size(rest.pop("right"), scope.within(node["cte_name"])))
        elif node["type"] == "SELECT_NODE":
            total, scope = self._selected(rest, total, scope)
        inner = total.beside(self._sum(rest.values(), scope))
        columns = total.columns if node["type"] == "SELECT_NODE" else inner.columns
        relations = inner.relations + 1 + GROUPING * len(node.get("group_sets", ()))
        query = Size(inner.nodes + 1, relations, inner.depth + 1, inner.queries + 1, columns)
        query.check()
        return query

    def _selected(self, rest: Node, total: Size, scope: Scope) -> tuple[Size, Scope]:
        """Check the FROM clause and columns of a SELECT, and remove them from ``rest``.

        Each column can refer to the aliases of the previous columns.
        """
        source = self._sum([rest.pop("from_table")], scope)
        total = total.beside(source)
        columns = 0
        for item in rest.pop("select_list"):
            scope = replace(scope, width=source.columns)
            column = self._sum([item], scope)
            total = total.beside(column)
            columns += max(1, column.columns)
            if alias := item.get("alias"):
                scope = replace(scope, aliases={**scope.aliases, small(alias): column})
        return replace(total, columns=columns), scope

    def _expression(self, node: Node, inner: Size, scope: Scope) -> Size:
        kind = node["class"]
        copies, depth, columns = 1, 1, inner.columns
        if kind in ("LAMBDA", "BETWEEN"):
            copies = COPIES
        elif kind == "FUNCTION":
            copies = self._checks.repeats(node)
        elif kind == "COLUMN_REF":
            names = node["column_names"]
            depth = len(names)
            inner = inner.beside(scope.aliases.get(small(names[0]), EMPTY))
        elif kind == "STAR":
            columns = scope.width
        elif kind == "SUBQUERY":
            columns = 0
        return Size(
            1 + inner.nodes * copies, inner.relations, inner.depth + depth, inner.queries, columns
        )

    def _source(self, node: Node, inner: Size, scope: Scope) -> Size:
        """Return the size of a FROM item."""
        kind, columns = node["type"], inner.columns
        if kind == "BASE_TABLE":
            path = node["qualified_name"]["path"]
            named = scope.queries.get(small(str(path[0]))) if len(path) == 1 else None
            inner = inner.beside(named or EMPTY)
            columns = named.columns if named else TABLE_COLUMNS
        elif kind == "EXPRESSION_LIST":
            columns = len((node.get("values") or [[]])[0])
        elif kind == "TABLE_FUNCTION":
            columns = TABLE_COLUMNS
        elif kind == "PIVOT":
            made = prod(max(1, len(pivot.get("entries", ()))) for pivot in node.get("pivots", ()))
            columns += made * max(1, len(node.get("aggregates", ())))
        nodes, relations = inner.nodes + 1, inner.relations + 1
        return Size(nodes, relations, inner.depth + 1, inner.queries, columns)
