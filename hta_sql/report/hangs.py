"""Sentences of the first screen about what hangs, from Flight Recorder dumps."""

from __future__ import annotations

from typing import Any

from hta_sql.report.first_screen import FirstScreen
from hta_sql.report.headings import sentence

CAUSES = 2
"""Maximum number of hangs with a sentence; the section lists all of them."""


def hangs_of(first: FirstScreen) -> dict[str, Any]:
    """Return the title of a page about a hang, its further sentences, and the number of others.

    The sentences are those of the analysis ``hang``, with the cause first; the title is the first
    sentence of the first hang. All are empty if nothing hangs.
    """
    rows = first.hang.records()
    if not rows:
        return {}
    several = len({row["run"] for row in rows}) > 1
    texts = [f"{row['run']}: {row['message']}" if several else row["message"] for row in rows]
    title, _, rest = texts[0].partition(". ")
    others = [rest, *texts[1:CAUSES]] if rest else texts[1:CAUSES]
    return {
        "title": sentence(title),
        "others": [sentence(text) for text in others],
        "more": len(rows) - CAUSES,
    }
