"""Every public name of HTA is here too, with its parameters, or the documentation says what is instead."""

from __future__ import annotations

import csv
import importlib
import inspect
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from tests.parity.hta_names import LIST

DIFFERENCES = Path(__file__).parents[2] / "docs" / "hta_differences.md"
HEADING = "## What is not here, and what to call instead"


def documented() -> list[str]:
    """Names in the first column of the table, as they stand."""
    section = DIFFERENCES.read_text(encoding="utf-8").split(HEADING)[1].split("\n## ")[0]
    cells = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


@cache
def found(path: str) -> tuple[bool, Any]:
    """Whether a name of HTA is here, and what it is."""
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
    return hasattr(holder, name), getattr(holder, name, None)


def lacking() -> set[str]:
    """What HTA has and we do not: names, and ``name(parameter)`` also for another default."""
    missing = set()
    with LIST.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            is_there, value = found(row["name"])
            if not is_there:
                missing.add(row["name"])
            elif row["parameters"]:
                missing |= {f"{row['name']}({p})" for p in differing(value, row["parameters"])}
    return missing


def differing(value: Any, parameters: str) -> list[str]:
    """Parameters of HTA that a function does not take, or whose default is another one."""
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


def test_every_name_is_here_or_in_the_table() -> None:
    """A stranger who changes imports finds each name, or reads what to call."""
    patterns = documented()
    unexplained = [n for n in sorted(lacking()) if not any(fnmatchcase(n, p) for p in patterns)]
    assert not unexplained, "\n".join(unexplained)


def test_the_table_lists_only_what_is_not_here() -> None:
    """A name that came is taken out of the table."""
    names = lacking()
    idle = [p for p in documented() if not any(fnmatchcase(name, p) for name in names)]
    assert not idle, "\n".join(idle)


def test_the_list_is_of_hta() -> None:
    """A list that lost its rows would make the others pass over nothing."""
    with LIST.open(encoding="utf-8", newline="") as file:
        kinds = [row["kind"] for row in csv.DictReader(file)]
    assert kinds.count("module") > 30
    assert kinds.count("method") > 150
