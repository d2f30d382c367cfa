"""Finds products of times in nanoseconds that overflow 64-bit integers, in the engine's parse tree.

The square of 3.1 s in nanoseconds exceeds BIGINT, as does 100 times the time since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

Node = dict[str, Any]

_TIME = re.compile(r"(?:.*_)?(?:ns|dur|ts)")

_LARGE = 100
"""Least integer constant that is refused as a factor of a time."""

_SAME_TYPE = frozenset(
    (
        *("+", "-", "abs", "greatest", "least", "nullif"),
        *("any_value", "first_value", "lag", "last_value", "lead", "max", "min"),
    )
)
"""Functions that return an integer for integers; sums are HUGEINT, quotients and means DOUBLE."""


def overflowing_products(nodes: Iterable[Node]) -> Iterator[str]:
    """Yield products of two times, and of a time and a large integer, without a wider type.

    Only factors whose column names state a time are recognized. A cast anywhere in a product, even
    in the factor of a factor, makes it wide enough.
    """
    for node in nodes:
        if node.get("class") != "FUNCTION" or node.get("function_name") != "*":
            continue
        factors = [argument["expression"] for argument in node["arguments"]]
        times = [name for factor in factors for name in _times(factor)][:2]
        large = [text for factor in factors if (text := _large_integer(factor))]
        if all(_times(factor) or _large_integer(factor) for factor in factors) and times:
            yield " * ".join((*large, *times)[: len(factors)])


def _times(node: Node) -> list[str]:
    """Return the first BIGINT time in an expression, as a list of at most one qualified name."""
    if node["class"] == "COLUMN_REF":
        names = node["column_names"]
        return [".".join(names)] if _TIME.fullmatch(names[-1]) else []
    parts: list[Node] = []
    if node["class"] in {"FUNCTION", "WINDOW"} and node["function_name"] in _SAME_TYPE:
        parts = [argument["expression"] for argument in node["arguments"]]
    elif node["type"] == "OPERATOR_COALESCE":
        parts = node["children"]
    return [name for part in parts for name in _times(part)][:1]


def _large_integer(node: Node) -> str | None:
    literal = node.get("literal") or {}
    is_large = literal.get("kind") == "INTEGER" and int(literal["text"]) >= _LARGE
    return literal["text"] if is_large else None
