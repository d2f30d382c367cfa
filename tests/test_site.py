"""Tests of the documentation site: navigation, links, notebooks and pictures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generate.site import BESIDE, DOCS, NAV, main, pages_of_docs, write_pages
from hta_sql.charts import FIGURES
from tests.report_pages import Browser

NOT_OF_A_SMALL_JOB = 0.5
"""Minimum share of analyses with a picture.

The synthetic job has no memory events, stacks or vendor-specific events.
"""


def test_every_page_has_its_place() -> None:
    """Every page is in the navigation, because readers cannot find it otherwise."""
    parts = [[part] if isinstance(part, str) else list(part.values()) for part in NAV.values()]
    listed = {page for part in parts for page in part}
    pages = {path.relative_to(DOCS).as_posix() for path in pages_of_docs()}
    notebooks = {f"notebooks/{path.stem}.md" for path in (DOCS / "notebooks").glob("*.ipynb")}
    assert listed == pages | notebooks | {*BESIDE.values()}


def test_links_to_files_that_are_no_pages_are_words(tmp_path: Path) -> None:
    """Links to pages in README.md lead to pages of the site; other file links become plain text."""
    write_pages(tmp_path)
    start = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert "(schema.md)" in start
    assert not re.findall(r"\]\((?:docs|\.\.|tests|sql)/", start)


def test_a_notebook_is_a_page_with_what_it_shows(tmp_path: Path) -> None:
    """A notebook becomes a page with text, code, tables, and charts as separate files."""
    write_pages(tmp_path)
    page = (tmp_path / "notebooks" / "stragglers.md").read_text(encoding="utf-8")
    assert page.startswith("# Who is late, and why\n")
    assert "Straggler: rank 5 costs the other ranks" in page
    assert "<table><thead>" in page
    pictures = re.findall(r"!\[([^\]]+)\]\((\S+\.svg)\)", page)
    assert "Stragglers" in {words for words, _ in pictures}
    assert all((tmp_path / "notebooks" / name).exists() for _, name in pictures)
    story = (tmp_path / "notebooks" / "operator_story.md").read_text(encoding="utf-8")
    assert "](../../tests" not in story


@pytest.mark.slow(reason="documents")
def test_the_site_is_built_without_a_broken_link(tmp_path: Path, chromium: Browser) -> None:
    """The site has no broken links, loads nothing from the network, and can be searched."""
    main(tmp_path / "site")
    pages = list((tmp_path / "site").glob("**/*.html"))
    texts = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert not re.findall(
        r"<(?:script|link|img)[^>]+(?:src|href)=\"?https?://(?!www\.sitemaps)[^\" >]+\.(?:js|css|png|svg|woff)",
        texts,
    )
    assert not re.findall(r"<script[^>]+src=\"?https?:", texts)
    chromium.complaints()
    chromium.visit((tmp_path / "site" / "index.html").as_uri())
    chromium.ask("document.querySelector('.md-search__input').focus()")
    chromium.press("straggler")
    chromium.wait("return document.querySelectorAll('.md-search-result__item').length > 2")
    assert chromium.complaints() == []
    pictures = {path.stem for path in (tmp_path / "site" / "pictures").glob("*.svg")}
    # data_flow is drawn by hand; the other pictures are charts of analyses.
    assert pictures <= {*FIGURES, "data_flow"}
    assert len(pictures) > NOT_OF_A_SMALL_JOB * len(FIGURES)
    assert set(re.findall(r"pictures/(\w+)\.svg\"", texts)) == pictures
