"""Take the screenshots in README.md, which show the report on the job of ``hta-sql demo``.

Usage: ``python -m docs.generate.screenshots FOLDER``. Requires Chromium, but no network.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import hta_sql
from hta_sql.report import write_report
from hta_sql.synthetic import JobSpec, write_job

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PICTURES = {"report": "", "communication": "#topic-communication"}
"""File name ─▶ URL fragment of the part of the report to show."""

_JOB = JobSpec(ranks=8, steps=4, stragglers={5: 3_000_000})
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--window-size=1400,900",
)
_DRAWN_MS = 10_000


def main(folder: Path) -> None:
    """Write the report of the job, and take screenshots of it."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"needs one of {', '.join(BROWSERS)}")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        traces, page = Path(temporary, "8ranks-4steps"), Path(temporary, "report.html")
        write_job(traces, _JOB)
        with hta_sql.ingest(str(traces), Path(temporary, "job.store"), jobs=1) as store:
            write_report(store, page)
        for name, place in PICTURES.items():
            out = f"--screenshot={(folder / name).resolve()}.png"
            wait = f"--virtual-time-budget={_DRAWN_MS}"
            command = [browser, *_FLAGS, wait, out, page.as_uri() + place]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)  # noqa: S603 - the user's browser


if __name__ == "__main__":
    main(Path(sys.argv[1]))
