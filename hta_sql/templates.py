"""Render HTML templates with a jinja2 environment that escapes all values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup


class Templates:
    """HTML templates (files that end in ``.html.j2``) from one or more folders.

    Values are escaped, except markup that another template rendered. An undefined value is an
    error.

    Args:
        *folders: Folders to search for a template, in this order.
        **filters: Filters by name.
    """

    def __init__(self, *folders: Path, **filters: Any) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(folders),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= filters
        # NaN is not JSON: a browser would reject all data in the page.
        dumps = {"separators": (",", ":"), "allow_nan": False}
        self._environment.policies["json.dumps_kwargs"] = dumps

    def render(self, name: str, **values: Any) -> Markup:
        """Render a template.

        Args:
            name: File name without ``.html.j2``.
            **values: Variables of the template.
        """
        text = self._environment.get_template(f"{name}.html.j2").render(values)
        return Markup(text)  # noqa: S704 - the environment escapes all values
