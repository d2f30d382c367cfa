"""Mutations of SQL: small changes that should make a test fail.

A mutation replaces one span of a statement. Comments, names and types are not mutated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.mutants.regexes import with_less
from tests.mutants.tokens import Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Change = tuple[int, int, str]
"""Start and end of the span, and its replacement."""

COMPARISONS = {
    "=": ("<>",),
    "<>": ("=",),
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
}
ARITHMETIC = {"+": "-", "-": "+", "*": "+", "/": "*", "//": "*", "%": "*"}
_FUNCTIONS = """
min>max max>min least>greatest greatest>least arg_min>arg_max arg_max>arg_min lead>lag lag>lead
first>last last>first first_value>last_value last_value>first_value bool_or>bool_and
bool_and>bool_or sum>max avg>max median>avg rank>row_number dense_rank>rank
stddev_samp>stddev_pop stddev>stddev_pop quantile_cont>quantile_disc floor>ceil ceil>floor
round>floor abs> starts_with>contains contains>starts_with ends_with>contains lower> upper>
count_if>count list_distinct> list_sort> TRY_CAST>CAST
"""
FUNCTIONS = dict(pair.split(">") for pair in _FUNCTIONS.split())
"""Function ─▶ its replacement; an empty one leaves only the argument."""

FIRST_ARGUMENT = ("coalesce", "ifnull", "nullif")
JOINS = {"JOIN": "LEFT JOIN", "LEFT JOIN": "JOIN", "FULL JOIN": "LEFT JOIN"}
OTHER_JOINS = ("SEMI", "ANTI", "CROSS", "RIGHT", "POSITIONAL")
JOIN_WORDS = {"SEMI": "ANTI", "ANTI": "SEMI"}
BRANCHES = ("WHERE", "ON", "HAVING", "QUALIFY", "WHEN")
_REGEX_CALLS = re.compile(r"REGEXP_\w+")
_SHORT = 8
_PROSE = re.compile(r"\S \S+ \S+ \S+ \S")
"""Matches human-readable sentences, which no computation uses."""


@dataclass(frozen=True)
class Mutant:
    """A change to one file of the library."""

    file: str
    line: int
    mutation: str
    """Changed line, with ``[[old -> new]]`` at the change; a short line includes the next one."""
    text: str

    @property
    def key(self) -> tuple[str, str]:
        """Return the identity of the mutant, which does not depend on its line number."""
        return self.file, self.mutation


def mutants_of(file: str, sql: str) -> list[Mutant]:
    """Return every distinct mutant of a SQL statement."""
    found: dict[str, Mutant] = {}
    statement = Statement(sql)
    for rule in RULES:
        for start, end, new in rule(statement):
            text = sql[:start] + new + sql[end:]
            if text != sql and text not in found:
                line = sql.count("\n", 0, start) + 1
                found[text] = Mutant(file, line, _mutation(sql, start, end, new), text)
    return sorted(found.values(), key=lambda mutant: mutant.line)


def _mutation(sql: str, start: int, end: int, new: str) -> str:
    before = sql[sql.rfind("\n", 0, start) + 1 : start]
    until = (sql + "\n").find("\n", end)
    if not before.strip() and len(sql[end:until]) < _SHORT:
        # A line of one word means nothing without the next one.
        until = (sql + "\n\n").find("\n", until + 1)
    behind = sql[end:until]
    old = sql[start:end] or "nothing"
    return " ".join(f"{before}[[{old} -> {new.strip() or 'nothing'}]]{behind}".split())


def comparisons(sql: Statement) -> Iterator[Change]:
    """Mutate comparisons, NULL tests, negations and the bounds of BETWEEN."""
    for at, token in enumerate(sql.tokens):
        if token.kind == "sign":
            for new in COMPARISONS.get(token.text, ()):
                yield token.start, token.end, new
        elif token.up == "IS":
            if sql.up(at + 1) == "NOT":
                yield *sql.span(at, at + 1), "IS"
            else:
                yield token.start, token.end, "IS NOT"
            null_safe = at + 1 + (sql.up(at + 1) == "NOT")
            if sql.up(null_safe) == "DISTINCT":
                yield *sql.span(at, null_safe + 1), "=" if null_safe > at + 1 else "<>"
        elif token.up == "NOT" and sql.up(at - 1) not in ("IS", "AS"):
            yield token.start, token.end, ""
        elif token.up == "BETWEEN" and sql.up(at - 1) not in ("ROWS", "RANGE", "GROUPS"):
            yield token.end, token.end, " 1 +"
            until = sql.tokens[sql.betweens[at]]
            yield until.end, until.end, " -1 +"


def conditions(sql: Statement) -> Iterator[Change]:
    """Exchange AND and OR, and remove each condition."""
    for at, token in enumerate(sql.tokens):
        if sql.up(at - 1) == "CREATE":
            continue
        if token.up in ("AND", "OR") and at not in sql.betweens.values():
            neutral = "true" if token.up == "AND" else "false"
            yield token.start, token.end, "OR" if token.up == "AND" else "AND"
            yield *sql.span(sql.operand_before(at), at - 1), neutral
            yield *sql.span(at + 1, sql.operand_after(at)), neutral
        elif token.up in BRANCHES:
            if sql.up(at - 1) == "DISTINCT" or (token.up == "WHEN" and _is_value(sql, at)):
                continue
            end = sql.operand_after(at)
            if sql.up(end + 1) not in ("AND", "OR"):
                yield *sql.span(at + 1, end), "false" if token.up == "WHEN" else "true"
        elif token.up == "FILTER" and sql.up(at + 1) == "(":
            yield *sql.span(at, sql.closing[at + 1]), ""


def _is_value(sql: Statement, when: int) -> bool:
    """Return whether WHEN is followed by a value of a simple CASE instead of a condition."""
    depth = 0
    for at in range(when - 1, -1, -1):
        depth += {"END": 1, "CASE": -1}.get(sql.up(at), 0)
        if depth < 0:
            return sql.up(at + 1) != "WHEN"
    return False


def constants(sql: Statement) -> Iterator[Change]:
    """Mutate constants: add or subtract one, change a string, or remove a part of a pattern."""
    patterns = dict(_patterns(sql))
    for at, token in enumerate(sql.tokens):
        if token.up in ("TRUE", "FALSE"):
            yield token.start, token.end, "false" if token.up == "TRUE" else "true"
        elif token.kind == "number" and not _only_counts_rows(sql, at):
            for new in _other_numbers(token.text):
                yield token.start, token.end, new
        elif token.kind == "text" and at in patterns:
            if patterns[at]:
                for pattern in with_less(token.text[1:-1]):
                    yield token.start, token.end, f"'{pattern}'"
            else:
                yield token.start, token.end, "''"
        elif token.kind == "text" and sql.up(at + 1) != ":" and not _PROSE.search(token.text):
            yield token.start, token.end, f"{token.text[:-1]}~'"


def _only_counts_rows(sql: Statement, at: int) -> bool:
    """Return whether a constant is the select list of EXISTS, whose value does not matter."""
    return [sql.up(at - back) for back in (3, 2, 1)] == ["EXISTS", "(", "SELECT"] and (
        sql.up(at + 1) == "FROM"
    )


def _is_a_set(sql: Statement, distinct: int) -> bool:
    """Return whether DISTINCT is inside IN, EXISTS or SEMI JOIN, where duplicates do not matter."""
    if sql.up(distinct - 1) != "SELECT" or sql.up(distinct + 1) == "ON":
        return False
    bracket = distinct - 2
    inside = range(bracket, sql.closing.get(bracket, bracket))
    counts = any(sql.up(at) in ("LIMIT", "OFFSET", "QUALIFY") for at in inside)
    is_looked_into = sql.up(bracket - 1) in ("IN", "EXISTS") or (
        sql.up(bracket - 1) == "JOIN" and sql.up(bracket - 2) in JOIN_WORDS
    )
    return is_looked_into and sql.up(bracket) == "(" and not counts


def _patterns(sql: Statement) -> Iterator[tuple[int, bool]]:
    """Return the positions of regular expressions (True) and of their flags and replacements."""
    for at, token in enumerate(sql.tokens):
        if _REGEX_CALLS.fullmatch(token.up) and at + 1 in sql.closing:
            for begin, end in sql.arguments(at + 1)[1:]:
                if begin == end and sql.tokens[begin].kind == "text":
                    yield begin, sql.opening.get(begin - 1) is None and sql.up(begin - 1) == ","
                    break


def _other_numbers(text: str) -> list[str]:
    plain = text.replace("_", "")
    if not plain.isdigit():
        value = float(plain)
        return [repr(value * 2 or 1.0)]
    number = int(plain)
    return [str(number + 1)] + ([str(number - 1)] if number else [])


def joins(sql: Statement) -> Iterator[Change]:
    """Swap inner and outer joins, and SEMI and ANTI joins, and mutate set operations."""
    for at, token in enumerate(sql.tokens):
        before = sql.up(at - 1)
        if token.up == "JOIN":
            if before in ("LEFT", "FULL"):
                yield *sql.span(at - 1, at), JOINS[f"{before} JOIN"]
            elif before not in OTHER_JOINS and not _falls_away(sql, at):
                yield token.start, token.end, JOINS["JOIN"]
        elif token.up in JOIN_WORDS and sql.up(at + 1) == "JOIN":
            yield token.start, token.end, JOIN_WORDS[token.up]
        elif token.up == "UNION":
            if sql.up(at + 1) == "ALL":
                yield *sql.span(at, at + 1), "UNION"
                yield token.start, token.end, "EXCEPT"
            else:
                yield token.start, token.end, "UNION ALL"


def distinct(sql: Statement) -> Iterator[Change]:
    """Mutate the handling of duplicates: remove or add DISTINCT."""
    for at, token in enumerate(sql.tokens):
        is_tried = token.up == "DISTINCT" and sql.up(at - 1) not in ("IS", "NOT")
        if is_tried and not _is_a_set(sql, at):
            if sql.up(at + 1) == "ON":
                yield *sql.span(at, sql.closing[at + 2]), ""
            else:
                yield token.start, token.end, ""


_ENDS = frozenset(
    ("UNION", "EXCEPT", "INTERSECT", "GROUP", "ORDER", "HAVING", "QUALIFY", "WINDOW", "LIMIT")
)


def _falls_away(sql: Statement, join: int) -> bool:
    """Return whether rows without a partner are removed later.

    This is the case if a later JOIN or WHERE compares a column of the partner in one of several
    conditions joined by AND, because a comparison with NULL is never true.
    """
    at, partner, keeps = join + 1, "", False
    while at < len(sql.tokens) and sql.up(at) not in (*_ENDS, ")"):
        word = sql.up(at)
        if word == "JOIN":
            keeps = sql.up(at - 1) in ("LEFT", "ANTI", "FULL", "RIGHT")
            if sql.up(at - 1) in ("FULL", "RIGHT"):
                return False
        elif word == "AS" and not partner:
            partner = sql.tokens[at + 1].text
        elif word in ("ON", "WHERE"):
            is_own = word == "ON" and not any(
                sql.up(other) == "JOIN" for other in range(join + 1, at)
            )
            if not is_own and not (word == "ON" and keeps) and _compares(sql, at, partner):
                return True
        at = sql.closing.get(at, at) + 1
    return False


def _compares(sql: Statement, at: int, name: str) -> bool:
    """Return whether a condition of ON or WHERE is a plain comparison with a column of this name."""
    operands = [(at + 1, sql.operand_after(at))]
    while sql.up(operands[-1][1] + 1) == "AND":
        behind = operands[-1][1] + 1
        operands.append((behind + 1, sql.operand_after(behind)))
    if sql.up(operands[-1][1] + 1) == "OR":
        return False
    for begin, end in operands:
        tokens = sql.tokens[begin : end + 1]
        is_plain = sum(token.text in COMPARISONS for token in tokens) == 1 and not any(
            token.text in "([{" or token.up in ("NOT", "IS", "CASE", "IN") for token in tokens
        )
        if is_plain and any(a.text == name and b.text == "." for a, b in pairwise(tokens)):
            return True
    return False


def arithmetic(sql: Statement) -> Iterator[Change]:
    """Replace arithmetic operators and functions, and remove signs and defaults."""
    for at, token in enumerate(sql.tokens):
        if token.text in ARITHMETIC:
            before = sql.tokens[at - 1]
            is_operator = before.kind in ("number", "text") or before.text in (")", "]")
            is_operator |= before.kind == "word" and before.up not in _BEFORE_VALUES
            if is_operator:
                yield token.start, token.end, ARITHMETIC[token.text]
            elif token.text == "-":
                yield token.start, token.end, ""
        elif token.kind == "word" and sql.up(at + 1) == "(" and at + 1 in sql.closing:
            yield from _calls(sql, at)


_BEFORE_VALUES = frozenset(
    ("SELECT", "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "BETWEEN", "DISTINCT", "BY", "IN")
)


def _calls(sql: Statement, at: int) -> Iterator[Change]:
    token = sql.tokens[at]
    new = FUNCTIONS.get(token.text, FUNCTIONS.get(token.text.lower()))
    if new is not None:
        yield token.start, token.end, new
    if token.text.lower() in FIRST_ARGUMENT:
        begin, end = sql.span(*sql.arguments(at + 1)[0])
        yield token.start, sql.tokens[sql.closing[at + 1]].end, f"({sql.sql[begin:end]})"


def orders(sql: Statement) -> Iterator[Change]:
    """Reverse each item of ORDER BY, and shorten window frames."""
    for at, token in enumerate(sql.tokens):
        if token.up == "BY" and sql.up(at - 1) == "ORDER":
            for _, end in sql.items(at + 1):
                yield _turned(sql, end)
        elif token.up == "NULLS" and sql.up(at + 1) in ("FIRST", "LAST"):
            other = "LAST" if sql.up(at + 1) == "FIRST" else "FIRST"
            yield *sql.span(at, at + 1), f"NULLS {other}"
        elif token.up == "UNBOUNDED":
            yield token.start, token.end, "1"
        elif token.up == "IGNORE" and sql.up(at + 1) == "NULLS":
            yield *sql.span(at, at + 1), ""


def _turned(sql: Statement, last: int) -> Change:
    while sql.up(last) in ("NULLS", "FIRST", "LAST"):
        last -= 1
    direction = sql.tokens[last]
    if direction.up in ("DESC", "ASC"):
        return direction.start, direction.end, "ASC" if direction.up == "DESC" else "DESC"
    return direction.end, direction.end, " DESC"


def partitions(sql: Statement) -> Iterator[Change]:
    """Merge partitions by removing items of PARTITION BY."""
    for at, token in enumerate(sql.tokens):
        if token.up == "BY" and sql.up(at - 1) == "PARTITION":
            items = list(sql.items(at + 1))
            for number, (begin, end) in enumerate(items):
                start, stop = sql.span(begin, end)
                if len(items) == 1:
                    yield start, stop, "NULL"
                elif number:
                    yield sql.tokens[begin - 1].start, stop, ""
                else:
                    yield start, sql.tokens[end + 1].end, ""


RULES: tuple[Callable[[Statement], Iterator[Change]], ...] = (
    comparisons,
    conditions,
    constants,
    joins,
    distinct,
    arithmetic,
    orders,
    partitions,
)
