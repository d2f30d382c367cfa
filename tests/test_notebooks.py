"""Tests that the saved outputs of the notebooks in docs/notebooks are current."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from docs.generate.notebooks import COOKBOOK, ROOT, cookbook, executed, standing_in

NOTEBOOKS = ROOT / "docs" / "notebooks"
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
QUICK = ("trace_analysis_demo",)


def saved(name: str) -> dict[str, Any]:
    """Return a saved notebook by name."""
    notebook: dict[str, Any] = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    return notebook


def shown(notebook: dict[str, Any]) -> list[str]:
    """Return the outputs of the code cells as text; a chart is only a placeholder."""
    texts = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            lines = output.get("text") or data.get("text/html") or data["text/plain"]
            texts.append("".join(lines))
    return texts


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Set up the folder in which the notebooks run in order, so that later ones reuse ingests."""
    with standing_in(tmp_path_factory.mktemp("notebooks") / "root"):
        yield


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=() if n in QUICK else pytest.mark.slow(reason="documents"))
        for n in NAMES
    ],
)
@pytest.mark.usefixtures("place")
def test_outputs_are_current(name: str) -> None:
    """Running the notebook gives the saved outputs, apart from the drawing of charts."""
    before = saved(name)
    assert shown(executed(before)) == shown(before)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_saved_and_name_no_place(name: str) -> None:
    """Outputs have tables and, except in the cookbook, charts, but no paths of local folders."""
    outputs = [output for cell in saved(name)["cells"] for output in cell.get("outputs", [])]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert ("image/svg+xml" in kinds) == (name != COOKBOOK)
    text = json.dumps(outputs)
    assert not [place for place in ("/" + "tmp", "/home", "/root", "/work") if place in text]
    assert set(re.findall(r"https?://[\w./]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


def test_the_cookbook_is_that_of_the_page() -> None:
    """Each recipe in the notebook is on the page."""
    page = (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8")
    made = {"".join(cell["source"]) for cell in cookbook(page)["cells"]}
    kept = ["".join(cell["source"]) for cell in saved(COOKBOOK)["cells"]]
    assert set(kept) <= made
    assert sum(text.startswith("store.sql") for text in kept) >= 25
