"""A page that draws charts by itself: its scripts are inside, and nothing is ever fetched.

Names out of a trace are payloads until proven otherwise. They reach a page in two ways only: as
text that :func:`html.escape` wrote, and as JSON in which no ``<`` is left. A content security
policy lets the page's own two scripts run, by their hashes, and forbids all others, and every
connection.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import vl_convert

from hta_sql._version import __version__
from hta_sql.machine import cache_folder
from hta_sql.traces.writing import replacing

_GLOBALS = "window.vegaEmbed = vegaEmbed;"
_ASSETS = Path(__file__).parent / "assets"


class Page:
    """An HTML file in the making: pieces are added in order, then written as one text.

    Args:
        title: Its title, as plain text.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._pieces: list[str] = []

    def add(self, markup: str) -> None:
        """Append a piece of HTML; all text in it is escaped already."""
        self._pieces.append(markup)

    def text(self) -> str:
        """Write the page."""
        scripts = (bundle(), _asset("specs.js") + _asset("page.js"))
        policy = (
            "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data: blob:; "
            # Vega compiles its expressions; none of them holds anything from a trace.
            f"style-src 'unsafe-inline'; script-src 'unsafe-eval' {' '.join(map(_hash, scripts))}"
        )
        return "\n".join(
            (
                "<!DOCTYPE html>",
                '<html lang="en">',
                "<head>",
                '<meta charset="utf-8">',
                f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                '<link rel="icon" href="data:,">',
                f"<title>{html.escape(self.title)}</title>",
                f"<style>{_asset('page.css')}</style>",
                "</head>",
                "<body>",
                *self._pieces,
                *(f"<script>{script}</script>" for script in scripts),
                "</body>",
                "</html>",
                "",
            )
        )


def chart_place(key: str, spec: dict[str, Any], label: str = "") -> str:
    """Write the place of a chart and its data, and what it says in words; ``page.js`` draws it there."""
    return (
        f'<div class="chart" data-chart="{html.escape(key)}" data-label="{html.escape(label)}"></div>'
        f'<script type="application/json" id="{html.escape(key)}">'
        f"{script_json(_packed(spec))}</script>"
    )


def _packed(spec: dict[str, Any]) -> dict[str, Any]:
    """Name the columns of its rows once, which halves the bytes; ``specs.js`` names them again."""
    sets = spec.get("datasets", {})
    return spec | {"datasets": {key: _table(rows) for key, rows in sets.items()}}


def _table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return {"columns": columns, "rows": [[row.get(column) for column in columns] for row in rows]}


def script_json(value: Any) -> str:
    """Write JSON that may stand inside of a script element: nothing in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, out of the installed package.

    In a block, since its short names would be those of the whole page. The package puts them
    together anew each time, which takes a second and a half, so the script is kept in the user's
    cache: under both versions, the package's and ours, and with its own hash in front.
    """
    maker = hashlib.sha256(f"{__version__} {_GLOBALS}".encode()).hexdigest()[:16]
    kept = cache_folder() / "scripts" / f"vega-{version('vl-convert-python')}-{maker}.js"
    with suppress(OSError, UnicodeError):
        known, _, script = kept.read_bytes().decode("utf-8").partition("\n")
        if known == f"// {_hash(script)}":
            return script
    text = str(vl_convert.javascript_bundle(_GLOBALS))
    script = "{" + text.replace("</script", "<\\/script") + "\n}"
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replacing(kept) as partial:
            partial.write_bytes(f"// {_hash(script)}\n{script}".encode())
    return script


@cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
