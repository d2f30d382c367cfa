"""Parse docs/filters.md, which lists the SQL that replaces each HTA filter."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "filters.md").read_text(encoding="utf-8")


def recipes() -> list[tuple[str, str]]:
    """Return each class on the page with the SQL that follows its description."""
    found, name = [], ""
    for part in re.split(r"\n\n(?=`[A-Z]|```|#)", PAGE):
        if sql := re.match(r"```sql\n(.*?)```", part, re.DOTALL):
            found.append((name, sql[1]))
        elif named := re.match(r"`([^`]+)`", part):
            name = named[1]
    return found


RECIPES = recipes()
