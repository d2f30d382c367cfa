"""Split SQL into tokens with positions, and find its brackets, operands, items and arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*)
    |(?P<text>'(?:[^']|'')*')
    |(?P<number>\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<word>[A-Za-z_]\w*|\$\w+|"(?:[^"]|"")*")
    |(?P<sign>::|:=|->>|->|=>|<=|>=|<>|!=|==|\|\||//|\*\*|.)""",
    re.VERBOSE | re.DOTALL,
)

_CLAUSES = """
SELECT FROM WHERE ON HAVING QUALIFY GROUP ORDER LIMIT WINDOW UNION EXCEPT INTERSECT WHEN THEN ELSE
END AS CASE ROWS RANGE JOIN LEFT FULL ASOF SEMI ANTI CROSS USING LATERAL
"""
CLAUSES = frozenset(_CLAUSES.split())
"""Keywords that end a condition, a list item or a window frame."""


@dataclass(frozen=True)
class Token:
    """A word, sign, number or string of SQL; ``up`` is the word in capitals."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Return the position after the token."""
        return self.start + len(self.text)

    @property
    def up(self) -> str:
        """Return a word in capitals, and any other token as it is."""
        return self.text.upper() if self.kind == "word" else self.text


def tokens_of(sql: str) -> list[Token]:
    """Split SQL into tokens, without spaces and comments."""
    found = (Token(m.lastgroup or "", m[0], m.start()) for m in _TOKEN.finditer(sql))
    return [token for token in found if token.kind != "space"]


class Statement:
    """The tokens of a SQL file, with matched brackets and the AND of each BETWEEN."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.tokens = tokens_of(sql)
        self.closing: dict[int, int] = {}
        self.opening: dict[int, int] = {}
        self.betweens: dict[int, int] = {}
        """Position of a BETWEEN ─▶ position of its AND."""
        self._match()

    def _match(self) -> None:
        open_brackets: list[int] = []
        waiting: list[tuple[int, int]] = []
        for at, token in enumerate(self.tokens):
            if token.text in ("(", "[", "{"):
                open_brackets.append(at)
            elif token.text in (")", "]", "}") and open_brackets:
                begin = open_brackets.pop()
                self.closing[begin], self.opening[at] = at, begin
            elif token.up == "BETWEEN":
                waiting.append((at, len(open_brackets)))
            elif token.up == "AND" and waiting and waiting[-1][1] == len(open_brackets):
                self.betweens[waiting.pop()[0]] = at

    def up(self, at: int) -> str:
        """Return the token at a position in capitals, or an empty string outside the statement."""
        return self.tokens[at].up if 0 <= at < len(self.tokens) else ""

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return the character positions at which a range of tokens starts and ends."""
        return self.tokens[first].start, self.tokens[last].end

    def items(self, first: int) -> Iterator[tuple[int, int]]:
        """Yield the token ranges of the items in a comma-separated list that begins at a token."""
        begin = at = first
        while at < len(self.tokens):
            token = self.tokens[at]
            if at in self.closing:
                at = self.closing[at] + 1
                continue
            if self._is_clause(at) or token.text in (")", "]", "}", ","):
                if at > begin:
                    yield begin, at - 1
                if token.text != ",":
                    return
                begin = at + 1
            at += 1
        if at > begin:
            yield begin, at - 1

    def arguments(self, bracket: int) -> list[tuple[int, int]]:
        """Return the token ranges of the arguments in a pair of brackets."""
        found, begin, at = [], bracket + 1, bracket + 1
        while at <= self.closing[bracket]:
            if at == self.closing[bracket] or self.tokens[at].text == ",":
                if at > begin:
                    found.append((begin, at - 1))
                begin = at + 1
            at = self.closing.get(at, at) + 1
        return found

    def operand_before(self, at: int) -> int:
        """Return the start of the operand that ends before an AND or OR."""
        begin = at - 1
        while begin > 0:
            begin = self.opening.get(begin, begin)
            if self.up(begin) == "END":
                begin = self._case(begin, -1)
            if self._bounds(begin - 1, "([{"):
                return begin
            begin -= 1
        return begin

    def operand_after(self, at: int) -> int:
        """Return the end of the operand that begins after an AND, OR, WHERE, ..."""
        end = at + 1
        while end < len(self.tokens):
            if self.up(end) == "CASE":
                end = self._case(end, 1)
            end = self.closing.get(end, end)
            if end + 1 == len(self.tokens) or self._bounds(end + 1, ")]}"):
                return end
            end += 1
        return end - 1

    def _case(self, at: int, way: int) -> int:
        """Return the position of the END that closes a CASE, or of the CASE that an END closes."""
        depth = 0
        for other in range(at, len(self.tokens) if way > 0 else -1, way):
            depth += {"CASE": 1, "END": -1}.get(self.up(other), 0)
            if not depth:
                return other
        return at

    def _is_clause(self, at: int) -> bool:
        return self.up(at) in CLAUSES and not (
            self.up(at) == "FROM" and self.up(at - 1) == "DISTINCT"
        )

    def _bounds(self, at: int, brackets: str) -> bool:
        if self.up(at) in ("AND", "OR"):
            return at not in self.betweens.values()
        if self.tokens[at].text in (",", ":=", *brackets):
            return True
        return self._is_clause(at) and self.up(at) != "END"
