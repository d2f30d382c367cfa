"""Who finds a mutant: the golden cases and the properties of what the changed file is part of."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from hta_sql.authoring.golden import Case, difference
from hta_sql.library.objects import load_library
from tests import test_intervals, test_lib_operations, test_lib_values, test_operator_work
from tests.golden_cases import TESTS, all_cases
from tests.mutants.places import MutatedStore, Place, kept_store, open_place, texts_of
from tests.properties import test_orders, test_recomputed, test_scopes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from tests.mutants.mutations import Mutant


@dataclass(frozen=True)
class Judge:
    """A test: where it runs, and what fails where something is wrong."""

    name: str
    place: Callable[[], Place]
    check: Callable[[Place], None]

    def verdict(self, name: str, text: str) -> str:
        """Say why a mutant of an object is wrong; empty where the test passes."""
        place = self.place()
        try:
            place.install(name, text)
        except duckdb.Error as error:
            return f"refused: {_line(error)}"
        try:
            with place.limited():
                self.check(place)
        except Exception as error:  # noqa: BLE001 - whatever a test says of it
            return f"{self.name}: {_line(error)}"
        return ""


def _line(error: Exception) -> str:
    return f"{type(error).__name__} {error}".split("\n", 1)[0][:120]


MODULES = (test_intervals, test_lib_operations, test_lib_values, test_operator_work)
"""Tests of macros by themselves."""


class Court:
    """All judges of this process, and the places where they have sat already."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._order: dict[str, list[Judge]] = {}
        self._places: dict[str, Place] = {}

    def close(self) -> None:
        """Close all places."""
        for place in self._places.values():
            place.con.close()
        self._folder.cleanup()

    def place(self, traces: str) -> Place:
        """Return the place with the store of a ``traces`` line, opened now or before."""
        if traces not in self._places:
            self._places[traces] = open_place(kept_store(traces), Path(self._folder.name))
        return self._places[traces]

    def judge(self, mutant: Mutant) -> str:
        """Return who found a mutant; empty where nobody did."""
        name = Path(mutant.file).stem
        if name not in self._order:
            self._order[name] = list(self.judges(name))
        if found := undocumented(name, mutant.text):
            return found
        judges = self._order[name]
        for number, judge in enumerate(judges):
            if found := judge.verdict(name, mutant.text):
                # Who found one is likely to find the next one.
                judges.insert(0, judges.pop(number))
                return found
        return ""

    def judges(self, name: str) -> Iterator[Judge]:
        """List the judges of an object: its own properties, then of all that is made of it."""
        for module in MODULES:
            if name in module.MACROS:
                place = partial(_place_of_module, module)
                yield from (Judge(what, place, call) for what, call in _calls(module))
        users = users_of(name)
        for case in all_cases():
            if case.path.stem in users:
                place = partial(self.place, case.traces)
                yield Judge(case.id, place, partial(_golden, case))
        for seed in test_recomputed.SEEDS:
            place = partial(self.place, f"job {seed}")
            for what, check in _properties(seed, users):
                yield Judge(f"{what} of job {seed}", place, check)
        place = partial(self.place, f"job {test_scopes.SEED}")
        for what, check in _rules(test_scopes.SEED, users):
            yield Judge(what, place, check)


def undocumented(name: str, text: str) -> str:
    """Say which default is not that of docs/analyses.md, which a test compares with the files."""
    for parameter, type_, default in _DEFAULT.findall(text):
        in_a_table = default.replace("|", "\\|")
        if f"| `{parameter}` | {type_} | {in_a_table} |" not in _pages()[name]:
            return f"docs: {parameter} is not {default} by default"
    return ""


_DEFAULT = re.compile(r"^    (\w+) ([A-Z]\S*) := (.+?),?$", re.MULTILINE)


@cache
def _pages() -> dict[str, str]:
    """What docs/analyses.md says of each object."""
    page = (TESTS.parent / "docs" / "analyses.md").read_text(encoding="utf-8")
    return {part.split("\n", 1)[0]: part for part in page.split("\n### ")}


def _golden(case: Case, place: Place) -> None:
    columns, rows = place.ask(case.call)
    if found := difference(case, columns, rows):
        raise AssertionError(found)


def _properties(seed: int, users: set[str]) -> Iterator[tuple[str, Callable[[Place], None]]]:
    recomputed = test_recomputed.test_analysis_is_what_a_recomputation_says
    for case, (analysis, *_) in test_recomputed.CASES.items():
        if f"{analysis}_v1" in users:
            yield case, partial(_with_job, seed, partial(recomputed, case=case))
    if "trace_diff_v1" in users:
        test = test_recomputed.test_trace_diff_is_the_difference_of_its_sides
        yield "trace_diff", partial(_with_job, seed, test)
    if "critical_path_edges_v1" in users:
        forward = test_recomputed.test_critical_path_edges_go_forward_between_two_nodes_an_event
        yield "critical_path_edges", partial(_with_job, seed, forward)


def _rules(seed: int, users: set[str]) -> Iterator[tuple[str, Callable[[Place], None]]]:
    """What holds for all analyses alike."""
    rules: dict[str, Callable[..., object]] = {
        "is in order": test_orders.check_order,
        "keeps to itself": test_scopes.check_isolation,
    }
    for what, rule in rules.items():
        for user in sorted(users):
            if user.removesuffix("_v1") in test_scopes.ANALYSES:
                check = partial(_of_analysis, rule, user.removesuffix("_v1"))
                yield f"{user} {what}", partial(_with_job, seed, check)


def _of_analysis(rule: Callable[..., object], name: str, job: tuple[int, Any]) -> None:
    rule(job[1], name)


def _with_job(seed: int, test: Callable[..., None], place: Place) -> None:
    test((seed, MutatedStore(place)))


@cache
def _place_of_module(module: ModuleType) -> Place:
    return Place(module.connection(), texts_of(load_library()))


def _calls(module: ModuleType) -> Iterator[tuple[str, Callable[[Place], None]]]:
    """The tests of a module that take nothing but parameters, once for each of them."""
    for name, test in vars(module).items():
        if name.startswith("test_"):
            marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
            for values in product(*(_values(mark) for mark in marks)):
                options = {key: value for part in values for key, value in part.items()}
                yield f"{name}{list(options.values())}", partial(_call, test, options)


def _call(test: Callable[..., None], options: dict[str, Any], _: Place) -> None:
    test(**options)


def _values(mark: Any) -> list[dict[str, Any]]:
    names, values = mark.args[:2]
    if isinstance(names, str):
        names = [part.strip() for part in names.split(",")]
    return [
        dict(zip(names, value if len(names) > 1 else (value,), strict=True)) for value in values
    ]


@cache
def users_of(name: str) -> set[str]:
    """Names of what an object is part of, itself included, through any number of others."""
    users, found = {name}, {name}
    while found:
        found = {user for user, words in _words().items() if words & found} - users
        users |= found
    return users


@cache
def _words() -> dict[str, set[str]]:
    """What stands in the statement of each object, but its own name."""
    texts = texts_of(load_library())
    # Analyses read a derived table by its name without the version.
    texts |= {about.base_name: about.text for about in load_library().derived}
    bodies = {name: re.sub(r"--[^\n]*", "", text) for name, text in texts.items()}
    return {name: set(re.findall(r"\w+", body)) - {name} for name, body in bodies.items()}
