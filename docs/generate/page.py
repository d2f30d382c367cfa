"""Writes the generated parts of docs/: what stands between the markers of a page.

A page names its own marker, so that what people write around the generated part stays theirs.
Tests hold that every page is current.
"""

from __future__ import annotations

END = "<!-- end of reference -->"


def with_reference(text: str, begin: str, reference: str) -> str:
    """Replace what stands between a marker and :data:`END`; the page keeps the rest.

    Args:
        text: The page.
        begin: Its marker, a line of its own.
        reference: Markdown to put there.
    """
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(END)
    return f"{before}{begin}\n\n{reference.rstrip()}\n\n{END}{after}"


def prose(text: str) -> str:
    """Escape what Markdown takes for the beginning of an element: ``advice_<rule>.sql`` would lose its rule."""
    return text.replace("<", "&lt;")


def cell(text: str | None) -> str:
    """Escape a text for a cell of a Markdown table."""
    return prose(text or "").replace("|", "\\|").replace("\n", " ")
