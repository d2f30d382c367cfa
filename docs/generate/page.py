"""Write the generated part of a page of docs/, between its markers.

Each page has its own marker. Text around the generated part is preserved. Tests check that every
page is current.
"""

from __future__ import annotations

END = "<!-- end of reference -->"


def with_reference(text: str, begin: str, reference: str) -> str:
    """Replace the text between a marker and :data:`END`; the rest of the page is unchanged.

    Args:
        text: The page.
        begin: The page's marker, which is on a line of its own.
        reference: Markdown to insert.
    """
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(END)
    return f"{before}{begin}\n\n{reference.rstrip()}\n\n{END}{after}"


def prose(text: str) -> str:
    """Escape characters that Markdown would interpret as HTML, as in ``advice_<rule>.sql``."""
    return text.replace("<", "&lt;")


def cell(text: str | None) -> str:
    """Escape a string for a cell of a Markdown table."""
    return prose(text or "").replace("|", "\\|").replace("\n", " ")
