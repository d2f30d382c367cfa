"""The notebooks of docs/notebooks that keep their outputs: what is saved is what the cells print today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from docs.generate.notebooks import executed, standing_in

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"
KEPT = ["operator_story.ipynb"]


def texts(notebook: dict[str, Any]) -> list[str]:
    """What code cells print and return; of charts, that there is one."""
    shown = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            lines = output.get("text") or data.get("text/plain") or sorted(data)
            shown.append("".join(lines))
    return shown


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_outputs_are_current(name: str) -> None:
    """``make docs`` writes them; a chart may be drawn otherwise by another version of its library."""
    saved = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    with standing_in(NOTEBOOKS):
        again = executed(saved)
    assert texts(again) == texts(saved)
    assert any("image/svg+xml" in text for text in texts(saved))


@pytest.mark.parametrize("name", KEPT)
def test_outputs_name_no_place(name: str) -> None:
    """No folder of who ran it."""
    saved = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    places = ("/" + "tmp", "/home", ".store")
    assert not [text for text in texts(saved) if any(place in text for place in places)]
