"""A page that draws charts by itself: its scripts are inside, and nothing is ever fetched.

Names out of a trace are payloads until proven otherwise. They reach a page in two ways only: as
text that a template escaped, and as JSON in which no ``<`` is left. A content security
policy lets the page's own two scripts run, by their hashes, and forbids all others, and every
connection.
"""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import vl_convert
from markupsafe import Markup

from hta_sql._version import __version__
from hta_sql.machine import cache_folder
from hta_sql.templates import Templates
from hta_sql.traces.writing import replacing

_GLOBALS = "window.vegaEmbed = vegaEmbed;"
_ASSETS = Path(__file__).parent / "assets"


FOLDER = Path(__file__).parent / "templates"
"""The templates of this module; those of the report include ``chart``."""

_TEMPLATES = Templates(FOLDER)


def page_of(title: str, body: Markup) -> str:
    """Render a page.

    Args:
        title: Its title, as plain text.
        body: What it shows; all text in it is escaped.
    """
    scripts = (bundle(), _asset("specs.js") + _asset("page.js"))
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data: blob:; "
        # Vega compiles its expressions; none of them holds anything from a trace.
        f"style-src 'unsafe-inline'; script-src 'unsafe-eval' {' '.join(map(_hash, scripts))}"
    )
    return _TEMPLATES.render(
        "page", title=title, body=body, policy=policy, style=_asset("page.css"), scripts=scripts
    )


def page_of_chart(title: str, spec: dict[str, Any]) -> str:
    """Render a page with one chart."""
    chart = chart_markup("chart", spec)
    return page_of(title, _TEMPLATES.render("alone", chart=chart))


def chart_markup(key: str, spec: dict[str, Any], label: str = "") -> Markup:
    """Render the frame of a chart with its data; ``page.js`` draws it there.

    Args:
        key: Id of the data on the page.
        spec: The chart, as Vega-Lite.
        label: What it shows, in words.
    """
    return _TEMPLATES.render("chart", key=key, spec=_packed(spec), label=label)


def _packed(spec: dict[str, Any]) -> dict[str, Any]:
    """Name the columns of its rows once, which halves the bytes; ``specs.js`` names them again."""
    sets = spec.get("datasets", {})
    return spec | {"datasets": {key: _table(rows) for key, rows in sets.items()}}


def _table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return {"columns": columns, "rows": [[row.get(column) for column in columns] for row in rows]}


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
