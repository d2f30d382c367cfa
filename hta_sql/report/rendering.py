"""Renders the templates of the report."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from hta_sql.charts.page import FOLDER
from hta_sql.report.headings import sentence
from hta_sql.templates import Templates
from hta_sql.text import duration_text, printable


@cache
def _templates() -> Templates:
    filters = {"sentence": sentence, "printable": printable, "duration": duration_text}
    return Templates(Path(__file__).parent / "templates", FOLDER, **filters)


def render(name: str, **values: Any) -> Markup:
    """Render a template of the report: :meth:`hta_sql.templates.Templates.render`."""
    return _templates().render(name, **values)


def missing(text: str) -> Markup:
    """Render a sentence in place of missing content."""
    return render("missing", text=text)
