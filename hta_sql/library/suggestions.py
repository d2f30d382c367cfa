"""Suggests the analysis that an unknown name may mean."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from hta_sql.errors import nearest

TYPING_ERROR = 0.85
"""Similarity from which a name is taken for a mistyped one, whatever else it may mean."""


class Titled(Protocol):
    """What an analysis says about its meaning."""

    @property
    def base_name(self) -> str:
        """Name without the version."""

    @property
    def title(self) -> str:
        """Title in the header."""

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts in the header."""


def suggested(name: str, analyses: Sequence[Titled]) -> str:
    """Return ``" Did you mean 'x'?"``: by letters if almost equal, then by meaning, then by letters.

    The meaning of an analysis is in its title and in the line ``Also`` of its header.
    """
    names = sorted(analysis.base_name for analysis in analyses)
    if difflib.get_close_matches(name, names, n=1, cutoff=TYPING_ERROR):
        return nearest(name, names)
    wanted = _words(name)
    meant = [analysis for analysis in analyses if _means(analysis, wanted)]
    if not meant:
        return nearest(name, names)
    # What the header calls it comes first; then, the more of the words are in its name, the likelier.
    best = min(
        meant,
        key=lambda a: (
            wanted not in map(_words, _other_words(a)),
            -len(wanted & _words(a.base_name)),
            a.base_name,
        ),
    )
    return f" Did you mean {best.base_name!r}?"


def _means(analysis: Titled, wanted: set[str]) -> bool:
    return any(wanted <= _words(text) for text in (*_other_words(analysis), analysis.title))


def _other_words(analysis: Titled) -> list[str]:
    return analysis.facts.get("Also", "").split(", ")


def _words(text: str) -> set[str]:
    """Return the words of a name or title, without the ending of plurals."""
    return {word.rstrip("s") for word in re.split(r"\W|_", text.lower()) if word}
