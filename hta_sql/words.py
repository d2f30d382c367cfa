"""Small pieces of wording that several messages share."""

from __future__ import annotations

from collections.abc import Iterable


def rank_spans(ranks: Iterable[int]) -> str:
    """Write ``0-3, 7`` for 0, 1, 2, 3, 7."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)


def counted(number: int, noun: str) -> str:
    """Write ``1 rank`` or ``1,024 ranks``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
