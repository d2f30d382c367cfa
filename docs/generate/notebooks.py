"""Execute notebooks and save their outputs: ``python -m docs.generate.notebooks FOLDER``.

The outputs of a cell are its printed text and the value of its last expression: a chart as SVG, a
table as HTML. All notebooks run one after the other in a temporary folder that links to the
repository's tests, so later notebooks reuse the stores of earlier ones. The cookbook notebook is
generated from docs/cookbook.md.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COOKBOOK = "sql_cookbook"
COLUMNS = "110"
"""Line width of printed tables [characters]."""

_RECIPE = re.compile(r"^### (\d+\. .+?)\n\n(.*?)```sql\n(.+?)```", re.MULTILINE | re.DOTALL)
_ID = re.compile(r"\b(clip|gradient_)(\d+)")
_JOBS = """\
from pathlib import Path

import hta_sql
from hta_sql.synthetic import JobSpec, write_job

seen = {"python_stacks": True, "memory_events": True, "sync_events": True}
for run, layers in (("before", 4), ("after", 5)):
    traces = Path("hta_sql_demo/cookbook", run)
    if not traces.exists():
        write_job(traces, JobSpec(ranks=2, steps=3, layers=layers, **seen))
    hta_sql.ingest(traces, "hta_sql_demo/cookbook.store", run=run).close()
store = hta_sql.open("hta_sql_demo/cookbook.store")
"""


def cookbook(page: str) -> dict[str, Any]:
    """Return a notebook with the recipes of docs/cookbook.md."""
    cells = [
        _markdown(
            "# SQL cookbook\n\nRecipes of [cookbook.md](../cookbook.md) that a small simulated job can answer."
        ),
        _code(_JOBS),
    ]
    for title, words, query in _RECIPE.findall(page):
        cells.append(_markdown(f"### {title}\n\n{words}".strip()))
        cells.append(_code(f'store.sql("""\n{query}""")'))
    cells.append(_code("store.close()"))
    named = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells)]
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": named, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, Any]:
    source = text.rstrip().splitlines(keepends=True)
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source,
    }


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


def _answered(notebook: dict[str, Any]) -> dict[str, Any]:
    """Remove each recipe whose result is empty, together with its heading."""
    cells = notebook["cells"]
    empty = {at for at, cell in enumerate(cells) if ": 0 rows" in json.dumps(cell.get("outputs"))}
    kept = [cell for at, cell in enumerate(cells) if not {at, at + 1} & empty]
    return notebook | {"cells": kept}


def _outputs(source: str, namespace: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Run a cell and return its outputs."""
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
    """Return the saved form of a value: an image for a chart, a table for rows, otherwise text."""
    if hasattr(value, "_repr_mimebundle_"):
        # Ids are counted over the whole process, so they depend on the other notebooks.
        names: dict[str, str] = {}
        picture = _ID.sub(
            lambda found: names.setdefault(found.group(), f"{found.group(1)}{len(names)}"),
            value._repr_mimebundle_()["image/svg+xml"],
        )
        return {"image/svg+xml": _lines(picture), "text/plain": _lines(repr(value))}
    text = repr(value).replace(f"{Path.cwd()}/", "")  # a store shows its path
    markup = getattr(value, "_repr_html_", None)
    if markup is None:
        return {"text/plain": _lines(text)}
    return {"text/html": _lines(markup()), "text/plain": _lines(text)}


def _lines(text: str) -> list[str]:
    """Split a string into the list of lines that notebooks store, without trailing whitespace."""
    return [line.rstrip() + "\n" for line in text.rstrip().split("\n")]


@contextmanager
def standing_in(folder: Path) -> Iterator[None]:
    """Change to a new subfolder of ``folder``, and set the line width to :data:`COLUMNS`.

    The relative path to the tests is the same as from docs/notebooks.
    """
    place = folder / "docs" / "notebooks"
    place.mkdir(parents=True)
    (folder / "tests").symlink_to(ROOT / "tests")
    before, columns = Path.cwd(), os.environ.get("COLUMNS")
    os.chdir(place)
    os.environ["COLUMNS"] = COLUMNS
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.pop("COLUMNS")
        if columns is not None:
            os.environ["COLUMNS"] = columns


def main(folder: Path) -> None:
    """Execute all notebooks in a folder and save their outputs."""
    folder = folder.resolve()
    notebooks = {
        path: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.ipynb"))
    }
    page = (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8")
    notebooks[folder / f"{COOKBOOK}.ipynb"] = cookbook(page)
    with tempfile.TemporaryDirectory() as temporary, standing_in(Path(temporary)):
        for path, notebook in notebooks.items():
            done = _answered(executed(notebook))
            text = json.dumps(done, indent=1, ensure_ascii=False)
            path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
