"""Names that HTA's README, docs and examples use are supported, or listed with a replacement.

``hta_calls.csv`` lists how they use the names, and ``hta_names.csv`` lists the parameters of these
names in HTA 0.6.1, and of all methods of TraceAnalysis and TraceDiff.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.parity import hta_calls, hta_names
from tests.parity.hta_calls import Call

DIFFERENCES = Path(__file__).parents[2] / "docs" / "hta_differences.md"
HEADING = "## What is missing, and what to call instead"


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


CALLS = [Call(**row) for row in rows(hta_calls.LIST)]
NAMES = rows(hta_names.LIST)


def documented() -> list[str]:
    """Return the names in the first column of the table of missing names."""
    section = DIFFERENCES.read_text(encoding="utf-8").split(HEADING)[1].split("\n##")[0]
    cells = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def explained(name: str) -> bool:
    """Return whether the table lists a name literally, or a parameter by a pattern."""
    if "(" not in name:
        return name in documented()
    return any(fnmatchcase(name, pattern) for pattern in documented() if "(" in pattern)


@cache
def found(path: str) -> tuple[bool, Any]:
    """Return whether hta_sql supports a name of HTA, and the object."""
    module, _, name = path.rpartition(".")
    try:
        return True, importlib.import_module(f"hta_sql.hta.{path}")
    except ModuleNotFoundError:
        pass
    is_there, holder = found(module) if module else (True, importlib.import_module("hta_sql.hta"))
    if not is_there:
        return False, None
    if name in getattr(holder, "__dataclass_fields__", {}):
        return True, None
    if inspect.isclass(holder) and any(name in hta_names.attributes(c) for c in holder.__mro__):
        return True, None
    return hasattr(holder, name), getattr(holder, name, None)


def differing(value: Any, parameters: str) -> list[str]:
    """Return HTA's parameters that are missing or differ in position or default."""
    ours = inspect.signature(value).parameters
    wanted = [text.partition("=")[::2] for text in parameters.split(" ")]
    positions = [name for name in ours if name != "self"]
    return [
        name
        for at, (name, default) in enumerate(wanted)
        if name not in ours
        or positions[at] != name
        or (default and ours[name].default is inspect.Parameter.empty)
        or (default not in {"", "..."} and repr(ours[name].default) != default)
    ]


def lacking() -> set[str]:
    """Return HTA's missing names, and ``name(parameter)`` for each differing parameter."""
    missing = set()
    for row in NAMES:
        is_there, value = found(row["name"])
        if not is_there:
            missing.add(row["name"])
        elif row["parameters"]:
            missing |= {f"{row['name']}({p})" for p in differing(value, row["parameters"])}
    return missing


@pytest.mark.parametrize("place", sorted({call.place for call in CALLS}))
def test_a_page_of_hta_runs(place: str) -> None:
    """Every name that a page uses is supported with its arguments, or is in the table."""
    for call in CALLS:
        if call.place != place or explained(call.name):
            continue
        is_there, value = found(call.name)
        assert is_there, call
        if call.positional:
            is_method = inspect.isfunction(value) and "." in value.__qualname__
            given = [None] * (int(call.positional) + is_method)
            inspect.signature(value).bind(*given, **dict.fromkeys(call.keywords.split()))


def test_every_name_is_here_or_in_the_table() -> None:
    """Every name in the list is supported with its parameters, or the table has its replacement."""
    unexplained = [name for name in sorted(lacking()) if not explained(name)]
    assert not unexplained, "\n".join(unexplained)


def test_the_table_lists_only_what_is_not_here() -> None:
    """The table lists no name that is supported."""
    names = lacking()
    idle = [p for p in documented() if not any(fnmatchcase(name, p) for name in names)]
    assert not idle, "\n".join(idle)


def test_the_lists_are_of_hta() -> None:
    """The lists of HTA's names have the expected length, so the other tests are not vacuous."""
    kinds = [row["kind"] for row in NAMES]
    assert kinds.count("class") > 15
    assert kinds.count("method") > 40
    examples = {call.place for call in CALLS if call.place.startswith("examples/")}
    assert len(examples) == 13
    assert len({call.name for call in CALLS}) > 70
