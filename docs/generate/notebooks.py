"""Runs the cells of notebooks in order and saves what they print: ``python -m docs.generate.notebooks FILE ...``.

A cell's output is what it prints, and the repr of its last expression where that is an expression; a chart is an SVG.
Cells run in the folder of the notebook, as in Jupyter; one namespace for each notebook.
"""

from __future__ import annotations

import ast
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import altair as alt

from hta_sql import charts

COLUMNS = "110"
"""Characters a line of printed tables."""


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook with the outputs of its cells, run in the current folder."""
    namespace: dict[str, Any] = {}
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            outputs = list(_outputs("".join(cell["source"]), namespace))
            cells.append(cell | {"outputs": outputs})
        else:
            cells.append(cell)
    return notebook | {"cells": cells}


def _outputs(source: str, namespace: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Run a cell."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    value = None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "cell", "exec"), namespace)  # noqa: S102 - our own pages
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)  # noqa: S307
    if printed.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())}
    if value is not None:
        yield {"data": _shown(value), "metadata": {}, "output_type": "display_data"}


def _shown(value: Any) -> dict[str, Any]:
    """A chart as a picture, all else as text."""
    if not isinstance(value, alt.TopLevelMixin):
        return {"text/plain": _lines(repr(value))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chart.svg")
        charts.save(value, path)
        return {"image/svg+xml": _lines(path.read_text(encoding="utf-8"))}


def _lines(text: str) -> list[str]:
    """Texts of notebooks are lists of lines; blanks at ends of lines are not kept."""
    return [line.rstrip() + "\n" for line in text.rstrip().split("\n")]


@contextmanager
def standing_in(folder: Path) -> Iterator[None]:
    """Run in a folder, with lines of :data:`COLUMNS`."""
    before, columns = Path.cwd(), os.environ.get("COLUMNS")
    os.chdir(folder)
    os.environ["COLUMNS"] = COLUMNS
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.pop("COLUMNS")
        if columns is not None:
            os.environ["COLUMNS"] = columns


def main(paths: list[str]) -> None:
    """Bring the outputs of notebooks up to date."""
    for path in map(Path, paths):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        with standing_in(path.parent):
            done = executed(notebook)
        text = json.dumps(done, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
