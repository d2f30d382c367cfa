"""Tests that hostile names in a trace are plain text in the report, in an offline browser.

With ``REPORT_PAYLOADS=5000 REPORT_SEED=1 pytest -m slow tests/test_report_payloads.py``, the test
opens pages until it has shown 5,000 names.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

import hta_sql
from hta_sql.report import write_report
from tests.report_pages import Browser
from tests.report_payloads import MARK, hostile_job, payloads

COUNT = int(os.environ.get("REPORT_PAYLOADS", "1"))
SEED = int(os.environ.get("REPORT_SEED", "1"))

ALL = """
const within = (node) => [...node.querySelectorAll('*')].flatMap(
  (one) => [one, ...(one.shadowRoot ? within(one.shadowRoot) : [])]
);
const all = within(document);
"""
"""JavaScript that collects all elements, including those in shadow roots."""

ELEMENTS = (
    f"{ALL} return all.map(one => one.localName + [...one.attributes]"
    ".filter(a => a.name.startsWith('on') || a.name === 'srcdoc').map(a => ' ' + a.name).join(''))"
)
ADDRESSES = (
    f"{ALL} return all.flatMap(one => ['href', 'src', 'action', 'data', 'xlink:href']"
    ".filter(name => one.hasAttribute(name)).map(name => one.getAttribute(name)))"
)
STIRRED = f"""{ALL}
for (const one of all)
  for (const kind of ['mouseover', 'mousemove', 'focus', 'toggle', 'error', 'load', 'animationstart'])
    one.dispatchEvent(new Event(kind));
return new Promise(done => setTimeout(done, 100));
"""
OWNED = "return [window.owned ?? 0, document.title]"

NOT_OURS = {"img", "iframe", "object", "embed", "base", "video", "marquee", "math", "template"}


def test_they_would_run(chromium: Browser, tmp_path: Path) -> None:
    """Some payloads run if they are not escaped, so the other test can fail."""
    ran = 0
    for number, name in enumerate(itertools.islice(payloads(SEED), 120)):
        page = tmp_path / f"{number}.html"
        page.write_text(
            f"<html data-ready=yes><title>Mine</title><p title='{name}'>{name}", "utf-8"
        )
        chromium.open(page)
        ran += chromium.ask(OWNED) != [0, "Mine"]
    chromium.complaints()
    assert ran >= 2


def test_names_of_every_kind_do_not_run(
    chromium: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hostile names of kernels, operators, modules, frames, groups and devices never run."""
    names, shown, pages = payloads(SEED), 0, 0
    while shown < COUNT:
        folder = tmp_path / f"{pages}"
        folder.mkdir()
        title = f"Safe {next(names)}"
        with hta_sql.ingest(hostile_job(folder, names), folder / "a.store", run="job") as store:
            page = write_report(store, folder / "a.html", title=title)
        shown += safe_on(page, chromium)
        pages += 1
    if COUNT > 1:
        with capsys.disabled():
            made = int(MARK.findall(next(names))[0])
            sys.stdout.write(f"\nseed {SEED}: {made:,} names, {shown:,} on {pages} pages\n")


def safe_on(page: Path, chromium: Browser) -> int:
    """Open all panels of a page and assert that nothing ran; return how many names it shows."""
    chromium.complaints()
    chromium.requests()
    chromium.open(page)
    title = chromium.ask(OWNED)[1]
    assert title.startswith("Safe ")
    found: set[str] = set()
    for panel in chromium.ask(
        "return [...document.querySelectorAll('.panel')].map(p => '#' + p.querySelector('[id]').id)"
    ):
        chromium.go(panel)
        chromium.ask(STIRRED)
        found |= set(MARK.findall(chromium.text()))
    assert (
        chromium.ask("return document.querySelectorAll('.chart:not([data-drawn=yes])').length") == 0
    )
    elements = Counter(chromium.ask(ELEMENTS))
    assert [name for name in elements if " " in name or name in NOT_OURS] == []
    addresses = chromium.ask(ADDRESSES)
    assert [to for to in addresses if not to.startswith(("#", "data:,", "data:image/"))] == []
    assert len(found) > 100
    assert chromium.ask(OWNED) == [0, title]
    assert chromium.complaints() == []
    assert [url for url in chromium.requests() if not url.startswith(("data:", "blob:"))] == [
        page.as_uri()
    ]
    return len(found)
