"""Replaces names of analyses in messages with titles that link to their sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from markupsafe import Markup

from hta_sql.library.objects import load_library
from hta_sql.report.headings import sentence
from hta_sql.report.rendering import render

_NAMED = re.compile(
    r"\b(?P<before>look at )?(?P<name>(?(before)\w+|(?:[a-z0-9]+(?:_[a-z0-9]+)+|stragglers)))\b"
)
"""Names of analyses in a message: a word of several parts, or any word after "look at"."""


class Part(NamedTuple):
    """A part of a message: text, or the title of an analysis with the section to link to."""

    text: Markup
    title: str = ""
    section: str = ""


def linked(text: str, sections: set[str]) -> Markup:
    """Render a message.

    Args:
        text: The message; names from traces in the message are not linked.
        sections: Analyses with a section on the page.
    """
    return render("linked", parts=_parts(text, sections))


def named_in(text: str) -> Iterator[re.Match[str]]:
    """Find the names of analyses in a message: group ``name`` of each match."""
    known = {analysis.base_name for analysis in load_library().newest()}
    return (found for found in _NAMED.finditer(text) if found["name"] in known)


def _parts(text: str, sections: set[str]) -> Iterator[Part]:
    library = load_library()
    end = 0
    for found in named_in(text):
        name = found["name"]
        yield Part(sentence(text[end : found.start()] + (found["before"] or "")))
        yield Part(Markup(), library.find(name).title, name if name in sections else "")
        end = found.end()
    yield Part(sentence(text[end:]))
