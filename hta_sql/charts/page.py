"""Self-contained HTML pages with charts: the scripts are embedded, and nothing is fetched.

Names from a trace are treated as hostile. They reach a page in two ways only: as text escaped by a
template, and as JSON without any ``<``. A content security policy allows the page's own two scripts
by hash, and forbids all other scripts and every connection.
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
"""Templates of this module; those of the report include ``chart``."""

_TEMPLATES = Templates(FOLDER)


def page_of(title: str, body: Markup, *, has_scripts: bool = True) -> str:
    """Render a page.

    Args:
        title: Page title, as plain text.
        body: Page content, in which all text is escaped.
        has_scripts: Whether the page has scripts, which draw charts and sort tables.
    """
    scripts = (bundle(), _asset("specs.js") + _asset("page.js")) if has_scripts else ()
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data: blob:; "
        "style-src 'unsafe-inline'"
    )
    if scripts:
        # Vega compiles its expressions; none of them contains trace data.
        policy += f"; script-src 'unsafe-eval' {' '.join(map(_hash, scripts))}"
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
        label: Text alternative.
    """
    return _TEMPLATES.render("chart", key=key, spec=_packed(spec), label=label)


def _packed(spec: dict[str, Any]) -> dict[str, Any]:
    """Store column names once, not per row, which halves the size. ``specs.js`` restores them."""
    sets = spec.get("datasets", {})
    return spec | {"datasets": {key: _table(rows) for key, rows in sets.items()}}


def _table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return {"columns": columns, "rows": [[row.get(column) for column in columns] for row in rows]}


@cache
def bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed from the installed package as one script.

    It is wrapped in a block, because its short names would become globals. The package takes 1.5 s
    to bundle it, so the script is cached in the user's cache. The file name contains the versions
    of the package and of hta_sql, and the first line is the script's hash. The script begins with
    the licenses of the programs in it.
    """
    notices = _asset("third_party_notices.txt")
    maker = hashlib.sha256(f"{__version__} {_GLOBALS} {notices}".encode()).hexdigest()[:16]
    kept = cache_folder() / "scripts" / f"vega-{version('vl-convert-python')}-{maker}.js"
    with suppress(OSError, UnicodeError):
        known, _, script = kept.read_bytes().decode("utf-8").partition("\n")
        if known == f"// {_hash(script)}":
            return script
    text = str(vl_convert.javascript_bundle(_GLOBALS))
    script = f"/*!\n{notices}*/\n{{" + text.replace("</script", "<\\/script") + "\n}"
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
