"""Write the documentation as a site that needs no server: ``python -m docs.generate.site FOLDER``.

The pages are README.md and the unchanged Markdown files and notebooks of docs/. Each analysis gets
a picture, drawn from the synthetic job of ``hta-sql demo``. mkdocs fails on a broken link.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

import hta_sql
from docs.generate import analyses
from docs.generate.notebook_pages import page_of_notebook
from hta_sql.charts import FIGURES, save
from hta_sql.errors import HtaSqlError
from hta_sql.synthetic import JobSpec, write_job

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

NAV: dict[str, dict[str, str] | str] = {
    "Start": "index.md",
    "Questions": {
        "What a new user asks": "questions.md",
        "Who waits for whom": "communication.md",
        "Serving": "serving.md",
        "A job hangs": "hangs.md",
        "Out of memory": "memory.md",
        "Execution traces": "execution_traces.md",
        "What changed": "comparing.md",
        "Gates in CI": "gate.md",
        "Cookbook of SQL": "cookbook.md",
    },
    "Notebooks": {
        "Where the time goes": "notebooks/trace_analysis_demo.md",
        "Kernels": "notebooks/kernels.md",
        "Who is late": "notebooks/stragglers.md",
        "A serving engine": "notebooks/serving.md",
        "What changed": "notebooks/trace_diff_demo.md",
        "The operator that eats time and memory": "notebooks/operator_story.md",
        "SQL cookbook": "notebooks/sql_cookbook.md",
    },
    "Analyses": {"All": "analyses.md"}
    | {
        page.removesuffix(".md").replace("lib_", "lib/"): f"analyses/{page}"
        for page in analyses.pages()
    },
    "Reference": {
        "Tables": "schema.md",
        "Commands": "cli.md",
        "Limits": "limits.md",
        "The compiled reader": "native.md",
    },
    "With other programs": {
        "Clients": "clients.md",
        "Agents": "agents.md",
        "Superset": "superset/README.md",
        "Evidence": "evidence/README.md",
    },
    "Many runs, many machines": {
        "Record into a store": "record.md",
        "Runs": "runs.md",
        "Clusters and shards": "distributed.md",
        "Giving stores away": "redacting.md",
    },
    "Coming from HTA": {
        "What differs": "hta_differences.md",
        "Parity": "hta_parity.md",
        "Filters": "filters.md",
    },
    "Your own analyses": "your_own_analyses.md",
    "Development": {
        "How it works": "how_it_works.md",
        "Decisions": "decisions.md",
        "Contributing": "contributing.md",
    },
    "Security": "security.md",
    "Changes": "changes.md",
}

BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Page in the repository's root ─▶ file name on the site."""

_LINK = re.compile(r"(?<!\!)\[([^\]]+)\]\(([^)\s]+)\)")
_SECTION = re.compile(r"^## (\w+)_v\d+\n\n", re.MULTILINE)
_JOB = JobSpec(ranks=4, steps=3, stragglers={2: 3_000_000})

log = logging.getLogger("site")


def pages_of_docs() -> list[Path]:
    """List the pages in docs/, except for the sources of dashboards."""
    return sorted(path for path in DOCS.glob("**/*.md") if "pages" not in path.parts)


WORKER = "iframe-worker.js"
"""Script that makes the search work in pages opened from disk."""


def write_pages(folder: Path) -> None:
    """Copy the pages; a link to something that is not a page becomes plain text."""
    pages = {path.relative_to(ROOT).as_posix(): path.relative_to(DOCS) for path in pages_of_docs()}
    shutil.copytree(DOCS / "pictures", folder / "pictures")
    shutil.copy(Path(__file__).with_name(WORKER), folder / WORKER)
    targets = {name: page.as_posix() for name, page in pages.items()} | BESIDE
    for notebook in (DOCS / "notebooks").glob("*.ipynb"):
        targets[f"docs/notebooks/{notebook.name}"] = f"notebooks/{notebook.stem}.md"
    for source, page in targets.items():
        path, target = ROOT / source, folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        is_notebook = path.suffix == ".ipynb"
        text = (
            page_of_notebook(path, target.parent)
            if is_notebook
            else path.read_text(encoding="utf-8")
        )
        target.write_text(_with_links(text, source, page, targets), encoding="utf-8")


def _with_links(text: str, source: str, page: str, targets: Mapping[str, str]) -> str:
    def linked(found: re.Match[str]) -> str:
        words, target = found.groups()
        path, hash_, anchor = target.partition("#")
        if "://" in target or not path:
            return found.group()
        place = (ROOT / source).parent.joinpath(path).resolve()
        name = place.relative_to(ROOT).as_posix() if place.is_relative_to(ROOT) else ""
        if name not in targets:
            return words
        up = "../" * page.count("/")
        return f"[{words}]({up}{targets[name]}{hash_}{anchor})"

    return _LINK.sub(linked, text).replace("](docs/pictures/", "](pictures/")


def draw_pictures(folder: Path) -> int:
    """Draw the analyses of a synthetic job, and insert each picture into its analysis's page."""
    pictures = folder / "pictures"
    with tempfile.TemporaryDirectory() as temporary:
        write_job(Path(temporary, "traces"), _JOB)
        with hta_sql.ingest(
            str(Path(temporary, "traces")), Path(temporary, "store"), jobs=1
        ) as store:
            drawn = {
                name: about for name in sorted(FIGURES) if (about := _draw(store, name, pictures))
            }

    def with_picture(found: re.Match[str]) -> str:
        name = found.group(1)
        picture = f"![{drawn[name]}](../pictures/{name}.svg)\n\n" if name in drawn else ""
        return found.group() + picture

    for page in (folder / "analyses").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(_SECTION.sub(with_picture, text), encoding="utf-8")
    return len(drawn)


def _draw(store: hta_sql.TraceStore, name: str, folder: Path) -> str:
    """Draw an analysis; return its description, or an empty string if the job lacks the required data."""
    try:
        result = store.run(name)
        if not len(result):
            return ""
        save(result.chart(), folder / f"{name}.svg", name)
    except HtaSqlError as error:
        log.info("%s: %s", name, error)
        return ""
    return store.describe(name).summary


def configuration(pages: Path, site: Path) -> dict[str, Any]:
    """Return the site's configuration, which loads no font, script or image from the network."""
    return {
        "site_name": "hta_sql",
        "docs_dir": str(pages),
        "site_dir": str(site),
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.sections", "navigation.top", "content.code.copy"],
            "palette": [
                {
                    "media": f"(prefers-color-scheme: {scheme})",
                    "scheme": name,
                    "toggle": {"icon": "material/brightness-6", "name": f"Switch to {other}"},
                }
                for scheme, name, other in (
                    ("light", "default", "dark"),
                    ("dark", "slate", "light"),
                )
            ],
        },
        "plugins": ["search", "offline"],
        # Without this local script, every page would request one from a server.
        "extra": {"polyfills": [WORKER]},
        "markdown_extensions": [
            "tables",
            "admonition",
            "pymdownx.highlight",
            "pymdownx.superfences",
        ],
        "validation": {"links": {"anchors": "warn", "not_found": "warn"}},
        "nav": [
            {title: part if isinstance(part, str) else [{t: p} for t, p in part.items()]}
            for title, part in NAV.items()
        ],
    }


def main(site: Path) -> None:
    """Write the pages, draw the pictures and build the site."""
    with tempfile.TemporaryDirectory() as temporary:
        pages = Path(temporary, "pages")
        pages.mkdir()
        write_pages(pages)
        log.info("%d pictures.", draw_pictures(pages))
        config = Path(temporary, "mkdocs.yml")
        config.write_text(yaml.safe_dump(configuration(pages, site.resolve())), encoding="utf-8")
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", str(config)]
        quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
        subprocess.run(command, check=True, env=quiet)  # noqa: S603 - a program of this environment


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main(Path(sys.argv[1]))
