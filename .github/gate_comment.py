"""Write the gate's Markdown into one comment of a pull request: ``gate_comment.py REPORT``.

A later run of the same job updates the comment. Without a pull request, a token or the permission to
comment, a notice says so, and the job goes on.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

TIMEOUT_S = 30
PER_PAGE = 100

MOST = 60_000
"""Maximum length of a comment [characters]; GitHub refuses more than 65,536."""


def main(report: Path) -> None:
    """Create the comment, or update the one of an earlier run."""
    number, token = os.environ.get("PULL_REQUEST"), os.environ.get("TOKEN")
    if not number or not token:
        _notice("no pull request" if token else "no token")
        return
    marker = f"<!-- hta_sql gate: {os.environ['GITHUB_WORKFLOW']}, {os.environ['GITHUB_JOB']} -->"
    text = f"{marker}\n{report.read_text(encoding='utf-8')[:MOST]}"
    issues = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    comments = f"{issues}/{number}/comments"
    try:
        own = (one["id"] for one in _listed(comments, token) if marker in (one["body"] or ""))
        if (comment := next(own, None)) is None:
            _call("POST", comments, token, {"body": text})
        else:
            _call("PATCH", f"{issues}/comments/{comment}", token, {"body": text})
    except (OSError, ValueError) as error:
        _notice(f"{error}. It needs the permission pull-requests: write")


def _listed(url: str, token: str) -> Iterator[dict[str, Any]]:
    """Yield the comments of the pull request, oldest first."""
    page, count = 1, PER_PAGE
    while count == PER_PAGE:
        found = _call("GET", f"{url}?per_page={PER_PAGE}&page={page}", token)
        yield from found
        page, count = page + 1, len(found)


def _call(method: str, url: str, token: str, content: object = None) -> Any:
    """Send a request to GitHub's API, and return the decoded response."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    data = None if content is None else json.dumps(content).encode()
    request = Request(url, data, headers, method=method)  # noqa: S310 - the runner's own URL
    with urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
        return json.load(response)


def _notice(reason: str) -> None:
    sys.stdout.write(f"::notice::The gate writes no comment: {reason}.\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
