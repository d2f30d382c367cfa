"""Groups of Parquet files that a view reads in the same way."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class FileGroup:
    """Files of one table and span that are read in the same way; their paths contain the run."""

    columns: dict[str, str]
    paths: list[str]
    span: int = 0
    rank_in_path: bool = True
    """Whether the path contains the rank; otherwise the rank is a column of the file."""
    ranks: tuple[int, ...] | None = None
    """Ranks whose rows are read; None: all rows of the files."""

    def below(self, root: str) -> FileGroup:
        """Return the group with paths below a folder or URL."""
        return replace(self, paths=[f"{root}/{path}" for path in self.paths])
