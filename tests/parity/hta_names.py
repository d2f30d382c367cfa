"""Write hta_names.csv, HTA's names that its pages use; run it with a Python that has HTA.

python tests/parity/hta_names.py

The list has the names in hta_calls.csv, and the public methods of the two classes that HTA's API
documentation covers: TraceAnalysis and TraceDiff. A parameter is ``name`` or
``name=default``. A default whose text may differ between runs is written as ``...``.
"""

from __future__ import annotations

import ast
import csv
import dataclasses
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

LIST = Path(__file__).with_suffix(".csv")
CALLS = Path(__file__).with_name("hta_calls.csv")
WHOLE_CLASSES = ("trace_analysis.TraceAnalysis", "trace_diff.TraceDiff")
PACKAGE = "hta"
SKIPPED_MODULES = ("hta.utils.test_utils",)
NO_API = {"logger", "annotations", "perf_counter", "cmp_to_key", "TYPE_CHECKING"}
"""Names in HTA's modules that are not part of its API."""

Row = tuple[str, str, str]


def used() -> Iterator[Row]:
    """Yield the rows of the names that HTA's pages use."""
    with CALLS.open(encoding="utf-8", newline="") as file:
        names = {row["name"] for row in csv.DictReader(file)}
    yield from (r for r in rows() if r[0] in names or r[0].rpartition(".")[0] in WHOLE_CLASSES)


def rows() -> Iterator[Row]:
    """Yield name, kind and parameters of each public name, without the package name."""
    package = importlib.import_module(PACKAGE)
    for found in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        if found.name not in SKIPPED_MODULES:
            module = importlib.import_module(found.name)
            yield found.name.removeprefix(f"{PACKAGE}."), "module", ""
            yield from _of_module(module, found.name.removeprefix(f"{PACKAGE}."))


def _of_module(module: ModuleType, path: str) -> Iterator[Row]:
    for name, value in sorted(vars(module).items()):
        if name.startswith("_") or name in NO_API or inspect.ismodule(value):
            continue
        own = getattr(value, "__module__", None) == module.__name__
        if inspect.isclass(value):
            if own:
                yield from _of_class(value, f"{path}.{name}")
        elif inspect.isfunction(value):
            if own:
                yield f"{path}.{name}", "function", parameters(value)
        elif getattr(value, "__module__", "") != "typing":
            yield f"{path}.{name}", "data", ""


def _of_class(value: type, path: str) -> Iterator[Row]:
    is_enum = hasattr(value, "__members__")
    yield path, "class", "" if is_enum else parameters(value)
    fields = {field.name for field in dataclasses.fields(value)} if _is_dataclass(value) else set()
    yield from ((f"{path}.{name}", "attribute", "") for name in sorted(attributes(value)))
    for name in sorted({*dir(value), *fields}):
        owner = next((base for base in value.__mro__ if name in vars(base)), value)
        if name.startswith("_") or not owner.__module__.startswith(PACKAGE):
            continue
        raw = inspect.getattr_static(value, name, None)
        if inspect.isfunction(raw) or isinstance(raw, staticmethod | classmethod):
            yield f"{path}.{name}", "method", parameters(getattr(value, name))
        elif not inspect.isclass(raw):
            yield f"{path}.{name}", "property" if isinstance(raw, property) else "data", ""


def attributes(value: type) -> set[str]:
    """Return the public attributes that a class's own constructor sets."""
    if not inspect.isfunction(made := vars(value).get("__init__")):
        return set()
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(made)))
    except OSError:  # __init__ of a dataclass has no source
        return set()
    found = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if isinstance(node.value, ast.Name) and node.value.id == "self"
    }
    return {name for name in found if not name.startswith("_") and not hasattr(value, name)}


def parameters(function: Any) -> str:
    """Format the parameters of a function in one line."""
    found = inspect.signature(function).parameters.values()
    return " ".join(_parameter(p) for p in found if p.name != "self")


def _parameter(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return parameter.name
    text = repr(parameter.default)
    return f"{parameter.name}={text if len(text) < 40 and ' ' not in text else '...'}"


def _is_dataclass(value: type) -> bool:
    return dataclasses.is_dataclass(value)


if __name__ == "__main__":
    with LIST.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "kind", "parameters"])
        writer.writerows(used())
