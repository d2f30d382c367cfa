"""Run HTA's own tests on hta_sql, with ``hta`` as an alias of ``hta_sql.hta``.

python tests/parity/hta_own_tests.py path/to/HolisticTraceAnalysis [pytest options]

Prints how many tests in each file pass, and why the others fail. A test counts as "not promised" if
it uses a name that hta_sql lacks or checks which HTA function calls another;
docs/hta_differences.md lists replacements. Stores are created next to HTA's traces, so pass a copy
of the checkout. Nothing from HTA is stored here.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest

ALIAS, PACKAGE = "hta", "hta_sql.hta"
HELPERS = "hta.utils.test_utils"
"""HTA's module of test helpers, which is loaded from the checkout."""

with Path(__file__).with_name("hta_names.csv").open(encoding="utf-8", newline="") as _names:
    CLASSES = "|".join(
        row["name"].rpartition(".")[2] for row in csv.DictReader(_names) if row["kind"] == "class"
    )

KINDS = {
    "not promised": "|".join(
        (
            r"NotPromised",
            rf"'({CLASSES})'( object)? has no attribute",
            rf"\b({CLASSES})\.\w+\(\) (got an unexpected keyword|takes .* positional) argument",
            r"Expected '(?!mock')\w+' to have been called",
        )
    ),
    "no trace": r"Test data directory does not exist|TraceNotFoundError: .*/tests/data/",
}
"""Reasons for test failures that the compatibility promise does not cover.

The promise covers names and parameters (test_hta_names.py). A test that mocks a function tests the
caller instead of the result, and not every copy of HTA has the largest traces.
"""


class NotPromised(Exception):  # noqa: N818 - what it says
    """Raised if a test uses an HTA name that hta_sql lacks."""


class NotPromisedName:
    """Placeholder for a missing name; Python's error messages then contain this class name."""

    def __init__(self, name: str) -> None:
        vars(self)["name"] = name

    def __getattr__(self, name: str) -> Any:
        self.use()

    def use(self, *_: object, **__: object) -> NoReturn:
        """Raise an error that contains the missing name."""
        raise NotPromised(vars(self)["name"])

    __call__ = __getitem__ = __iter__ = __len__ = __eq__ = use
    __hash__ = object.__hash__


class Aliases(MetaPathFinder, Loader):
    """Import hook: ``import hta.x`` returns ``hta_sql.hta.x``, or placeholders if it is missing."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - importlib gives it
        target: ModuleType | None = None,  # noqa: ARG002 - likewise
    ) -> ModuleSpec | None:
        """Find a module below the alias."""
        if fullname.split(".", maxsplit=1)[0] != ALIAS:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        """Replace the alias with the real module."""
        name = module.__name__
        real = PACKAGE + name.removeprefix(ALIAS)
        is_package = False
        if importlib.util.find_spec(real) is not None:
            module = sys.modules[name] = importlib.import_module(real)
            is_package = hasattr(module, "__path__")

        def missing(attribute: str) -> ModuleType | NotPromisedName:
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            inner = f"{real}.{attribute}"
            if is_package and importlib.util.find_spec(inner):
                return importlib.import_module(inner)
            return NotPromisedName(f"{name}.{attribute}")

        vars(module).setdefault("__getattr__", missing)


class Outcomes:
    """Pytest plugin that collects the outcome of each test with its reason."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.reasons: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the result of a test once."""
        if report.when == "call" or not report.passed:
            self._note(report, report.outcome)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be imported."""
        if report.failed:
            self._note(report, report.outcome)

    def _note(self, report: pytest.TestReport | pytest.CollectReport, outcome: str) -> None:
        why = ""
        if not report.passed:
            lines = [
                line[1:].strip() for line in str(report.longrepr).splitlines() if line[:1] == "E"
            ]
            errors = [line for line in lines if re.match(r"[\w.]+(Error|Promised)\b", line)]
            why = errors[-1] if errors else "?"  # the last exception ended the test
            outcome = next((kind for kind, sign in KINDS.items() if re.search(sign, why)), outcome)
        self.counts[report.nodeid.split("::", maxsplit=1)[0]][outcome] += 1
        self.reasons += [f"{outcome}: {report.nodeid}: {why}"] if why else []

    def lines(self) -> Iterator[str]:
        """Yield a line for each file, the totals, and a line for each test that failed."""
        sums: Counter[str] = Counter()
        for name, counts in sorted(self.counts.items()):
            sums += counts
            yield f"{name}: {', '.join(f'{n} {what}' for what, n in sorted(counts.items()))}"
        yield f"all: {', '.join(f'{n} {what}' for what, n in sorted(sums.items()))}"
        yield ""
        yield from sorted(self.reasons)


def main(checkout: Path, options: list[str]) -> int:
    """Run the tests in a checkout of HTA; return pytest's exit code."""
    sys.meta_path.insert(0, Aliases())
    spec = importlib.util.spec_from_file_location(HELPERS, checkout / "hta/utils/test_utils.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"{checkout} is no checkout of HTA.")
    sys.modules[HELPERS] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[HELPERS])
    outcomes = Outcomes()
    quiet = ["-q", "--no-header", "--no-summary", "-p", "no:cacheprovider", "--color=no"]
    where = [f"--rootdir={checkout}", str(checkout / "tests")]
    code = pytest.main(
        [*quiet, "--continue-on-collection-errors", *where, *options], plugins=[outcomes]
    )
    sys.stdout.write("\n".join(outcomes.lines()) + "\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
