"""Open pages in headless Chromium without a network, and parse their HTML."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.report import write_report
from hta_sql.synthetic import JobSpec, write_job
from tests.shared_stores import made_once

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"
OPENS_WITHIN_S = 60
DRAWN = "return document.documentElement.dataset.ready === 'yes'"
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


_TAB = "\ue004"
"""Key code of the Tab key in the WebDriver protocol."""

_ALL_TEXT = """
const told = (node) => [...node.childNodes].map((inner) =>
  inner.nodeType === Node.TEXT_NODE
    ? inner.textContent
    : (inner.shadowRoot ? told(inner.shadowRoot) : "") + told(inner)
).join(" ");
return told(document.body);
"""


class Browser:
    """An offline browser that records the requests and console messages of its pages."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def open(self, page: Path, width: int = 1280) -> None:
        """Open a page and wait until everything is drawn."""
        self.visit(page.as_uri(), width)
        self.wait()

    def wait(self, script: str = DRAWN) -> None:
        """Wait until a script returns true; by default, until all visible parts are drawn."""
        from selenium.webdriver.support.ui import WebDriverWait  # noqa: PLC0415 - imported only for tests in a browser

        waiting = WebDriverWait(self._driver, OPENS_WITHIN_S, poll_frequency=0.05)
        waiting.until(lambda _: self.ask(script))

    def visit(self, url: str, width: int = 1280) -> None:
        """Open a URL in a window of a width in pixels."""
        # A headless window is at least 500 pixels wide, but a phone is narrower.
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self._driver.get(url)

    def go(self, place: str) -> None:
        """Follow a link within the page, such as ``#stragglers``."""
        if self.ask("return location.hash") != place:
            self.ask(
                "document.documentElement.dataset.ready = 'no'; location.hash = arguments[0]", place
            )
        self.wait()

    def click_in(self, host: str, right: float, down: float) -> None:
        """Click in a chart inside an element's shadow root.

        ``right`` and ``down`` are offsets from the center of the chart, as a fraction of half its
        size.
        """
        from selenium.webdriver import ActionChains  # noqa: PLC0415 - imported only for tests in a browser

        chart = self.ask(
            f"return document.querySelector({host!r}).shadowRoot.querySelector('canvas')"
        )
        half = chart.size["width"] / 2, chart.size["height"] / 2
        chain = ActionChains(self._driver)
        chain.move_to_element_with_offset(chart, int(right * half[0]), int(down * half[1]))
        chain.click().perform()

    def press(self, key: str, *, control: bool = False) -> None:
        """Press a key on the focused element."""
        from selenium.webdriver import ActionChains, Keys  # noqa: PLC0415 - imported only for tests in a browser

        chain = ActionChains(self._driver)
        if control:
            chain.key_down(Keys.CONTROL).send_keys(key).key_up(Keys.CONTROL).perform()
        else:
            chain.send_keys(key).perform()

    def tab_to(self, selector: str, most: int = 400) -> None:
        """Press Tab until an element has the focus."""
        for _ in range(most):
            self.press(_TAB)
            if self.ask("return document.activeElement.matches(arguments[0])", selector):
                return
        pytest.fail(f"{selector} is not reached by keys")

    def allow_clipboard(self) -> None:
        """Let pages read and write the clipboard."""
        wanted = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
        self._driver.execute_cdp_cmd("Browser.grantPermissions", wanted)

    def pasted(self) -> str:
        """Return the contents of the clipboard."""
        return str(self.ask("return navigator.clipboard.readText()"))

    def text(self) -> str:
        """Return the text of the page, including custom elements."""
        return str(self.ask(_ALL_TEXT))

    def ask(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page and return its result."""
        return self._driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """Return the console messages since the last call."""
        return [entry["message"] for entry in self._driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the URLs that the page requested since the last call."""
        found = []
        for entry in self._driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def screenshot(self, path: Path) -> None:
        """Save a screenshot of the visible part of the page."""
        self._driver.save_screenshot(str(path))


@contextmanager
def browser(profile: Path, *, offline: bool = True) -> Iterator[Browser]:
    """Start a browser with a fresh profile."""
    from selenium import webdriver  # noqa: PLC0415 - imported only for tests in a browser

    found = [place for name in BROWSERS if (place := shutil.which(name))]
    driver_path = shutil.which(DRIVER)
    if not found or not driver_path:
        pytest.fail(
            f"Tests marked browser need {' or '.join(BROWSERS)}, and {DRIVER}: "
            "apt-get install chromium-driver, or run without them: -m 'not browser'"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = found[0]
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    try:
        driver.execute_cdp_cmd("Network.enable", {})
        nothing = dict.fromkeys(("downloadThroughput", "uploadThroughput"), 0 if offline else -1)
        nothing["latency"] = 0
        driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": offline, **nothing})
        yield Browser(driver)
    finally:
        driver.quit()


def job_report(factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the store of a simulated job of four ranks and its report; both are created once."""

    def make(store: Path) -> None:
        job = write_job(store.parent / "traces", JobSpec(ranks=4, steps=3, layers=2))
        with hta_sql.ingest(job.files[0].parent, store, run="job") as opened:
            write_report(opened, store.parent / "report.html", everything=True)

    store = made_once(factory, "report_job", make)
    return store, store.parent / "report.html"


class Elements(HTMLParser):
    """HTML parser that records the elements, event handlers and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record a start tag, its event handlers and its links."""
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]


def kernel(number: int, name: str) -> dict[str, Any]:
    """Return one kernel on stream 7 that takes 10 µs and starts 20 µs after the previous one."""
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": 0,
        "tid": 7,
        "ts": 20.0 * number,
        "dur": 10.0,
        "args": {"device": 0, "stream": 7},
    }


def section_of(text: str, name: str) -> str:
    """Return one section of a page."""
    return text.partition(f'<section id="{name}">')[2].partition("</section>")[0]
