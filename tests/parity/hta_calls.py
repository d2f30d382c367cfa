"""Write hta_calls.csv, the list of names that HTA's README, docs and examples use.

python tests/parity/hta_calls.py path/to/HolisticTraceAnalysis

A row is a name that is imported, accessed or called, with its page, the number of positional
arguments and the keywords. The type of a variable is inferred from its assignment: ``Trace(...)``
is a Trace, and its ``symbol_table`` is a TraceSymbolTable. No code of HTA is run or stored.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).with_suffix(".csv")
PACKAGE = "hta."

GIVES = {
    "trace_analysis.TraceAnalysis.t": "common.trace.Trace",
    "trace_analysis.TraceAnalysis.critical_path_analysis": "analyzers.critical_path_analysis.CPGraph",
    "analyzers.critical_path_analysis.restore_cpgraph": "analyzers.critical_path_analysis.CPGraph",
    "common.trace.Trace.symbol_table": "common.trace_symbol_table.TraceSymbolTable",
    "common.trace.TraceSymbolTable": "common.trace_symbol_table.TraceSymbolTable",
    "configs.parser_config.ParserConfig.get_default_cfg": "configs.parser_config.ParserConfig",
}
"""Attribute or call that returns an HTA object ─▶ type of that object."""

NOT_IN_EVERY_COPY = {
    "examples/memory_analysis_demo.ipynb": [
        ("memory_analysis.MemoryAnalysis", "1", ""),
        ("memory_analysis.MemoryAnalysis.plot_memory_timeline", "0", "save_graph"),
    ],
}
"""Calls in a notebook of several megabytes, which some copies of the repository omit."""


class Call(NamedTuple):
    """One use of an HTA name; ``positional`` is empty if the name is not called."""

    name: str
    place: str
    positional: str
    keywords: str


class Uses(ast.NodeVisitor):
    """Collects the HTA names that are used in the code blocks of a page."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.known = {"analyzer": "trace_analysis.TraceAnalysis"}
        self.objects: set[str] = set()
        self.found: set[Call] = set()

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Record imports from HTA."""
        module = f"{node.module}."
        if module.startswith(PACKAGE):
            for alias in node.names:
                name = module.removeprefix(PACKAGE) + alias.name
                self.known[alias.asname or alias.name] = name
                self._add(name)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Record the type of an assigned variable."""
        self.generic_visit(node)
        for target in node.targets:
            first = target.elts[0] if isinstance(target, ast.Tuple) else target
            if isinstance(first, ast.Name) and (name := self._name(node.value)):
                self.known[first.id] = name
                self.objects.add(first.id)

    def visit_arg(self, node: ast.arg) -> None:
        """Record the type of a parameter from its annotation."""
        if node.annotation and (name := self._name(node.annotation)):
            self.known[node.arg] = GIVES.get(name, name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Record access to an attribute of an HTA object."""
        self.generic_visit(node)
        name = self._name(node.value)
        if name and not node.attr.startswith("_"):
            self._add(f"{name}.{node.attr}")

    def visit_Call(self, node: ast.Call) -> None:
        """Record a call with its arguments."""
        self.generic_visit(node)
        is_object = isinstance(node.func, ast.Name) and node.func.id in self.objects
        if not is_object and (name := self._path(node.func)):
            keywords = " ".join(sorted(k.arg for k in node.keywords if k.arg))
            self._add(name, str(len(node.args)), keywords)

    def _name(self, node: ast.expr) -> str:
        """Return the HTA class or module that an expression evaluates to."""
        if isinstance(node, ast.Call):
            node = node.func
            if isinstance(node, ast.Name) and node.id in self.objects:
                return ""  # calling a filter returns a frame
        path = self._path(node)
        return GIVES.get(path, path if _is_class(path) or path.count(".") == 1 else "")

    def _path(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return self.known.get(node.id, "")
        if isinstance(node, ast.Attribute) and (name := self._name(node.value)):
            return f"{name}.{node.attr}"
        return ""

    def _add(self, name: str, positional: str = "", keywords: str = "") -> None:
        self.found.add(Call(name, self.place, positional, keywords))


def calls(root: Path) -> Iterator[Call]:
    """Yield every use of an HTA name in HTA's README, documentation and examples."""
    pages = [root / "README.md", *root.glob("docs/**/*.rst"), *root.glob("examples/*.*")]
    for page in pages:
        place = page.relative_to(root).as_posix()
        text = page.read_text(encoding="utf-8")
        uses = Uses(place)
        for block in _blocks(page.suffix, text):
            with suppress(SyntaxError), warnings.catch_warnings(action="ignore"):
                uses.visit(ast.parse(block))
        if page.suffix == ".rst":
            named = re.findall(r"\bhta\.([a-z_]+(?:\.\w+)+)", text)
            uses.found.update(Call(name, place, "", "") for name in named)
        called = {call.name for call in uses.found if call.positional}
        yield from (call for call in uses.found if call.positional or call.name not in called)
    for place, names in NOT_IN_EVERY_COPY.items():
        yield from (Call(name, place, *arguments) for name, *arguments in names)


def _blocks(kind: str, text: str) -> Iterator[str]:
    """Yield the Python code blocks of a page, without IPython syntax."""
    if kind == ".py":
        yield text
    elif kind == ".ipynb":
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "code":
                lines = "".join(cell["source"]).splitlines()
                kept = [line.rstrip("?") for line in lines if not re.match(r"%|.*=!|.*= ?<", line)]
                yield "\n".join(kept)
    else:
        indented = re.findall(r"(?:^(?: {2,}.*)?\n)+", text, flags=re.MULTILINE)
        fenced = re.findall(r"```.*\n([\s\S]*?)```", text)
        for block in [*indented, *fenced, *re.findall(r"``(analyzer[.\w]+)", text)]:
            yield "\n".join(_dedented(block))


def _dedented(block: str) -> list[str]:
    lines = [line for line in block.splitlines() if line.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    return [line[margin:] for line in lines]


def _is_class(path: str) -> bool:
    last = path.rpartition(".")[2]
    return last[:1].isupper() and not last.isupper()


if __name__ == "__main__":
    with LIST.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Call._fields)
        writer.writerows(sorted(set(calls(Path(sys.argv[1])))))
