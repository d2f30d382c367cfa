"""Convert notebooks to pages of the site: text, code and saved outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def page_of_notebook(path: Path, pictures: Path) -> str:
    """Return a notebook as Markdown.

    Args:
        path: An .ipynb file with outputs.
        pictures: Folder to write the charts to, which must be the page's folder.
    """
    parts = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        picture = pictures / f"{path.stem}-{number}.svg"
        parts.extend(_shown(output, picture) for output in cell.get("outputs", ()))
    title, *rest = parts
    from_where = f"*The notebook docs/notebooks/{path.name}, with what its cells show.*"
    return "\n\n".join((title, from_where, *rest)) + "\n"


def _shown(output: dict[str, Any], picture: Path) -> str:
    data: dict[str, list[str]] = output.get("data", {})
    text = "".join(output.get("text") or data["text/plain"]).strip()
    if "image/svg+xml" in data:
        picture.write_text("".join(data["image/svg+xml"]), encoding="utf-8")
        words = text.removeprefix("<Chart: ").removesuffix(">")
        return f"![{words}]({picture.name})"
    if "text/html" in data:
        return f"<div>{_on_one_line(data['text/html'])}</div>"
    return f"```text\n{text}\n```"


def _on_one_line(markup: list[str]) -> str:
    """Join HTML into one line, because Markdown ends an HTML block at a blank line of pandas."""
    text = "".join(markup)
    start, _, rest = text.partition("<style scoped>")
    text = start + rest.partition("</style>")[2] if rest else text
    return " ".join(line.strip() for line in text.splitlines() if line.strip())
