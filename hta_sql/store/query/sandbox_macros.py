"""Determines from the definitions of macros how they use their arguments.

A macro may pass a string to ``query_table``, directly or through other macros. The string is then
the name of a relation. A macro may also repeat an argument, so nested calls grow exponentially.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

Name = tuple[str, ...]
"""The parts of a name in lower case; a schema, if given, comes first."""
Definition = tuple[list[str], str]
"""Parameters and SQL of a macro."""

_WORD = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|:=|=>|\S""")


@dataclass
class _Call:
    """A function call in the definition of a macro.

    Attributes:
        function: Name of the function, without schema.
        arguments: For each argument, its name (or an empty string) and the words in it.
    """

    function: str
    arguments: list[tuple[str, set[str]]] = field(default_factory=lambda: [("", set())])


class Macros:
    """The macros of a catalog and of the engine.

    Args:
        definitions: Macro name ─▶ its overloads.
    """

    def __init__(self, definitions: dict[Name, list[Definition]]) -> None:
        self._by_word: dict[str, list[Definition]] = {}
        for name, overloads in definitions.items():
            self._by_word.setdefault(name[-1], []).extend(overloads)
        self._taking: dict[str, frozenset[str | int]] = {
            "query_table": frozenset({0, "table_name", "table_names"})
        }
        self._repeating: dict[str, int] = {}

    def taking_names(self, function: str) -> frozenset[str | int]:
        """Return the names and positions of the parameters that take names of relations."""
        if function not in self._taking:
            self._taking[function] = frozenset()  # ends the recursion of a macro that calls itself
            self._taking[function] = frozenset(
                key
                for parameters, definition in self._overloads(function)
                for passed in [self._passed_on(definition, frozenset(parameters))]
                for position, parameter in enumerate(parameters)
                if parameter in passed
                for key in (position, parameter)
            )
        return self._taking[function]

    def repeats(self, function: str) -> int:
        """Return the maximum number of times a macro repeats an argument; 1 for other functions."""
        if function not in self._repeating:
            self._repeating[function] = 1
            self._repeating[function] = max(
                (
                    _most_uses(*overload) * self._inside(overload[1])
                    for overload in self._overloads(function)
                ),
                default=1,
            )
        return self._repeating[function]

    def _inside(self, definition: str) -> int:
        return max((self.repeats(call.function) for call in _calls(definition)), default=1)

    def _overloads(self, function: str) -> list[Definition]:
        return self._by_word.get(function, [])

    def _passed_on(self, definition: str, parameters: frozenset[str]) -> set[str]:
        """Return the parameters that a definition uses as names of relations."""
        passed: set[str] = set()
        for call in _calls(definition):
            for position, (name, words) in enumerate(call.arguments):
                mine = words & parameters
                if mine - passed and (name or position) in self.taking_names(call.function):
                    passed |= mine
        return passed


def _calls(definition: str) -> Iterator[_Call]:
    """Yield the calls in a definition, which the engine has normalized."""
    opened: list[_Call] = []
    before = ""
    for word in _words(definition):
        if word in {"(", "["}:
            opened.append(_Call(before if word == "(" else ""))
        elif word in {")", "]"} and opened:
            yield opened.pop()
        elif word == "," and opened:
            opened[-1].arguments.append(("", set()))
        elif word in {":=", "=>"} and opened:
            opened[-1].arguments[-1] = (before, set())
        else:
            for call in opened:
                call.arguments[-1][1].add(word)
        before = word


def _most_uses(parameters: list[str], definition: str) -> int:
    """Return how often a definition uses its most-used parameter; at least 1."""
    return max([1, *map(list(_words(definition)).count, parameters)])


def _words(definition: str) -> Iterator[str]:
    """Split a definition into lower-case words; strings keep their quotes, quoted names do not."""
    for word in _WORD.findall(definition):
        yield word[1:-1].replace('""', '"').lower() if word.startswith('"') else word.lower()
