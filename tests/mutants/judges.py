"""Tests that may kill a mutant: the golden cases and properties of all users of the changed file.

All tests of the file itself run first. Tests of its users follow, up to a limit. They take turns,
one test per user, starting with the nearest and smallest users.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, islice, product, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from hta_sql.authoring.golden import Case, difference
from hta_sql.library.objects import load_library
from tests import (
    test_clock_estimates,
    test_compared_causes,
    test_intervals,
    test_layered_time,
    test_lib_names,
    test_lib_operations,
    test_lib_values,
    test_operator_work,
)
from tests.golden_cases import TESTS, all_cases
from tests.mutants.places import AllPlaces, MutatedStore, Place
from tests.mutants.rows import JOB, PINNED, place_digest
from tests.mutants.uses import digest_of, digest_of_parts, parts_in, parts_of, texts_of, users_of
from tests.mutants.verdicts import Verdict
from tests.pinned import answers
from tests.properties import test_orders, test_recomputed, test_scopes
from tests.signatures import test_operator_models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

    from tests.mutants.mutations import Mutant

NEAREST = 40
"""Maximum number of golden cases of the nearest users."""

OTHERS = 12
"""Maximum number of golden cases of all other users.

If a mutant survives these, one of about two hundred remaining cases might still kill it. That would
mean that the file or one of its users needs a better test of its own.
"""

PINNED_USERS = 8
"""Maximum number of users whose pinned answers are compared, the nearest and smallest first."""

CROWD_USERS = 4
"""Maximum number of users whose answers are compared in a place with many runs."""

OTHER_PROPERTIES = 4
"""Maximum number of users' property tests, each of which runs several queries."""


@dataclass(frozen=True)
class Judge:
    """A test: its query, its place (the traces that it runs on), and its check."""

    name: str
    traces: str
    """Name of the place; empty for a test module."""
    sql: str
    check: Callable[[Place], None]
    about: str
    """What the test expects, as a string or a hash."""
    place: Callable[[], Place] | None = None

    def key(self, changed: str) -> str:
        """Hash everything that the verdict depends on, except the changed object itself."""
        parts = digest_of_parts(parts_in(self.sql) - {changed})
        rows = place_digest(self.traces) if self.traces else ""
        return digest_of(self.name, self.sql, self.about, parts, rows)[:12]

    def verdict(self, name: str, text: str, places: Callable[[], AllPlaces]) -> str:
        """Return why a mutant fails the test, or an empty string if it passes."""
        place = self.place() if self.place else places()
        try:
            with place.limited():
                if self.place:
                    place.install(name, text)
                elif not places().show(self.traces, name, text, self.sql):
                    return ""
        except duckdb.Error as error:
            return f"refused: {_line(error)}"
        try:
            with place.limited():
                self.check(place)
        except Exception as error:  # noqa: BLE001 - any error of a test kills
            return f"{self.name}: {_line(error)}"
        return ""


def _line(error: Exception) -> str:
    return f"{type(error).__name__} {error}".split("\n", 1)[0][:120]


MODULES = (
    *(
        test_clock_estimates,
        test_compared_causes,
        test_intervals,
        test_layered_time,
        test_lib_names,
    ),
    *(test_lib_operations, test_lib_values, test_operator_models, test_operator_work),
)
"""Test modules that each test individual macros."""


BESIDE_OTHERS = {"kpi_trends"}
"""Analyses that compare a run with earlier runs."""


class Court:
    """All judges of this process, and their open engines."""

    def __init__(self) -> None:
        self._order: dict[str, list[Judge]] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._sound: set[str] = set()
        self._places: AllPlaces | None = None

    def close(self) -> None:
        """Close the engine, if it is open."""
        if self._places:
            self._places.close()

    def places(self) -> AllPlaces:
        """Return the engine with the rows of all places, opening it at the first call."""
        self._places = self._places or AllPlaces()
        return self._places

    def judge(self, mutant: Mutant, known: Verdict | None = None) -> Verdict:
        """Return the verdict on a mutant: the test that kills it, or none.

        Args:
            mutant: The change.
            known: Its earlier verdict; tests that have not changed since do not run again.

        Raises:
            RuntimeError: A test fails even without the change.
        """
        name = Path(mutant.file).stem
        if name not in self._order:
            self._order[name] = list(self.judges(name))
        if found := undocumented(name, mutant.text):
            return Verdict(found, ())
        judges = self._order[name]
        keys = {judge.name: self._key(judge, name) for judge in judges}
        passed = set(known.keys) if known and not known.who else set()
        if known and known.who and set(known.keys) <= set(keys.values()):
            return known
        for number, judge in enumerate(judges):
            if keys[judge.name] in passed:
                continue
            if found := judge.verdict(name, mutant.text, self.places):
                self._vet(judge, name)
                # A test that killed one mutant is likely to kill the next one.
                judges.insert(0, judges.pop(number))
                return Verdict(found, (keys[judge.name],))
        return Verdict("", tuple(sorted(keys.values())))

    def _vet(self, judge: Judge, name: str) -> None:
        """Check once that a test passes on the unchanged library.

        A test that always fails would kill every mutant.
        """
        if judge.name not in self._sound:
            if found := judge.verdict(name, texts_of(load_library())[name], self.places):
                raise RuntimeError(f"{found}, without any change")
            self._sound.add(judge.name)

    def _key(self, judge: Judge, name: str) -> str:
        if (judge.name, name) not in self._keys:
            self._keys[judge.name, name] = judge.key(name)
        return self._keys[judge.name, name]

    def judges(self, name: str) -> Iterator[Judge]:
        """Yield the judges of an object: its own tests, then those of its users."""
        for module in MODULES:
            if name in module.MACROS:
                place = partial(_place_of_module, module)
                for what, call in _calls(module):
                    sql = " ".join(f"lib.{macro}" for macro in module.MACROS)
                    yield Judge(what, "", sql, call, _source(module), place)
        users = sorted(users_of(name), key=lambda user: (users_of(name)[user], _size(user), user))
        yield from map(_golden_judge, _cases().get(name, ()))
        yield from _properties(name)
        yield from _pinned_judges(users)
        golden = {user: _golden_judges(user, name) for user in users[1:]}
        asked = [users_of(name)[user] for user in users[1:] if golden[user]]
        near = [user for user in golden if users_of(name)[user] == min(asked, default=0)]
        far = [user for user in golden if user not in near]
        yield from islice(_by_turns([golden[user] for user in near]), NEAREST)
        yield from islice(_by_turns([golden[user] for user in far]), OTHERS)
        properties = _by_turns([list(_properties(user)) for user in users[1:]])
        yield from islice(properties, OTHER_PROPERTIES)


def _by_turns(judges: Iterable[list[Judge]]) -> Iterator[Judge]:
    """Return the first judge of each list, then the second of each, and so on."""
    turns = chain.from_iterable(zip_longest(*judges))
    return (judge for judge in turns if judge is not None)


@cache
def _size(name: str) -> int:
    """Return the total length of the SQL that the engine binds for an object."""
    return sum(len(texts_of(load_library())[part]) for part in parts_of(name))


@cache
def _cases() -> dict[str, list[Case]]:
    """Return the golden cases of each object."""
    found: dict[str, list[Case]] = {}
    asked = set()
    for case in all_cases():
        what = case.path.stem, case.traces, answers.whole_answer(case) or case.call
        if what not in asked:
            asked.add(what)
            found.setdefault(case.path.stem, []).append(case)
    return found


def _golden_judges(user: str, name: str) -> list[Judge]:
    return [_golden_judge(case) for case in _cases().get(user, ()) if name in parts_in(case.call)]


def _golden_judge(case: Case) -> Judge:
    if call := answers.whole_answer(case):
        # The pinned whole answer already includes the rows of the case.
        wanted = answers.pinned(answers.GOLDEN)[answers.key_of(case.traces, call)]
        whole = partial(_pinned, call, wanted, answers.whole_of)
        return Judge(f"{case.id}, all of it", case.traces, call, whole, str(wanted))
    check = partial(_golden, case)
    return Judge(case.id, case.traces, case.call, check, "\n".join(case.expected))


def _pinned_judges(users: list[str]) -> Iterator[Judge]:
    for place in (answers.ADVICE, answers.JOBS, *answers.CROWDS):
        asked = [user for user in users if user in answers.queries_of(place)]
        for user in asked[: CROWD_USERS if place in answers.CROWDS else PINNED_USERS]:
            for call in answers.queries_of(place)[user]:
                wanted = answers.pinned(place)[call]
                what = f"pinned {place}: {call}"
                check = partial(_pinned, call, wanted, answers.reduce_of(place))
                yield Judge(what, PINNED + place, call, check, str(wanted))


def _pinned(
    call: str, wanted: answers.Digests, reduce: Callable[..., answers.Digests], place: Place
) -> None:
    if found := answers.changes(reduce(*place.ask(call)), wanted):
        raise AssertionError("; ".join(found))


def undocumented(name: str, text: str) -> str:
    """Return a message about a default that differs from docs/analyses, or an empty string."""
    for parameter, type_, default in _DEFAULT.findall(text):
        in_a_table = default.replace("|", "\\|").replace("<", "&lt;")
        if f"| `{parameter}` | {type_} | {in_a_table} |" not in _pages()[name]:
            return f"docs: {parameter} is not {default} by default"
    return ""


_DEFAULT = re.compile(r"^    (\w+) ([A-Z]\S*) := (.+?),?$", re.MULTILINE)


@cache
def _pages() -> dict[str, str]:
    """Return the section of each object in docs/analyses."""
    return {
        part.split("\n", 1)[0]: part
        for page in (TESTS.parent / "docs" / "analyses").glob("*.md")
        for part in page.read_text(encoding="utf-8").split("\n## ")
    }


def _golden(case: Case, place: Place) -> None:
    columns, rows = place.ask(case.call)
    if found := difference(case, columns, rows):
        raise AssertionError(found)


def _properties(name: str) -> Iterator[Judge]:
    """Yield the recomputation tests of an analysis, and the rules that hold for all analyses."""
    recomputed = test_recomputed.test_analysis_is_what_a_recomputation_says
    base = name.removesuffix("_v1")
    tests: dict[str, Callable[..., None]] = {
        case: partial(recomputed, case=case)
        for case, (analysis, *_) in test_recomputed.CASES.items()
        if analysis == base
    }
    if base == "trace_diff":
        tests[base] = test_recomputed.test_trace_diff_is_the_difference_of_its_sides
    if base == "critical_path_edges":
        tests[base] = test_recomputed.test_critical_path_edges_go_forward_between_two_nodes_an_event
    for what, test in tests.items():
        for seed in test_recomputed.SEEDS:
            yield _of_job(f"{what} of job {seed}", seed, name, test)
    if name != base and base in test_scopes.ANALYSES:
        seed = test_scopes.SEED
        rules = {"is in order": test_orders.check_order, "keeps to itself": _keeps_to_itself}
        if base in BESIDE_OTHERS:
            del rules["keeps to itself"]
        for what, rule in rules.items():
            yield _of_job(f"{name} {what}", seed, name, partial(_of_analysis, rule, base))


def _of_job(what: str, seed: int, name: str, test: Callable[..., None]) -> Judge:
    return Judge(what, f"{JOB}{seed}", name, partial(_with_job, seed, test), _source(TESTS))


def _keeps_to_itself(store: Any, name: str) -> None:
    test_scopes.check_isolation(store, name)


def _of_analysis(rule: Callable[..., None], name: str, job: tuple[int, Any]) -> None:
    rule(job[1], name)


@cache
def _source(module: ModuleType | Path) -> str:
    """Hash a test module, or all modules of property tests."""
    folder = TESTS / "properties"
    paths = [Path(str(module.__file__))] if not isinstance(module, Path) else folder.glob("*.py")
    return digest_of(*(path.read_text(encoding="utf-8") for path in sorted(paths)))


def _with_job(seed: int, test: Callable[..., None], place: Place) -> None:
    test((seed, MutatedStore(place)))


@cache
def _place_of_module(module: ModuleType) -> Place:
    kept = [one for name, one in vars(module).items() if name != "connection"]
    forget = [one.cache_clear for one in kept if hasattr(one, "cache_clear")]
    con = module.connection()
    con.execute("SET enable_progress_bar = false")
    return Place(con, texts_of(load_library()), forget)


def _calls(module: ModuleType) -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Yield the tests of a module that take only parameters, one for each parameter set."""
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
