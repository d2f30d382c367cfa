"""Show which rows of the pinned answers changed since a commit.

Usage: ``python -m tests.pinned.changed [COMMIT [PLACE ...]]``, by default since HEAD and for the jobs
of tests/pinned/jobs.py. The digests show that an answer changed, and in which column and run; this
shows the values before and after.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from tests.pinned.answers import COMPUTED_HERE, JOBS, plain

ROOT = Path(__file__).parents[2]
SHOWN_ROWS = 5
"""Maximum number of rows shown of each kind of change of an answer."""

Row = tuple[str, ...]


def main(commit: str, places: list[str]) -> None:
    """Print the changed rows of each answer."""
    with tempfile.TemporaryDirectory() as top:
        tree, old, new = (Path(top, name) for name in ("tree", "old", "new"))
        _git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            for reader in (ROOT / "hta_sql").rglob("_reader.*"):
                shutil.copy(reader, tree / reader.relative_to(ROOT))
            _write_rows(tree, old, places)
        finally:
            _git("worktree", "remove", "--force", str(tree))
        _write_rows(ROOT, new, places)
        before, after = _answers(old), _answers(new)
    for query in dict.fromkeys([*before, *after]):
        for line in changed_rows(before.get(query), after.get(query)):
            print(f"{query}: {line}")  # noqa: T201 (the result of a command)


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=True)  # noqa: S603, S607


def _write_rows(tree: Path, folder: Path, places: list[str]) -> None:
    script = Path(__file__).with_name("rows.py")
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, str(script), str(folder), *places]
    subprocess.run(command, cwd=tree, env=environment, check=True)  # noqa: S603


def _answers(folder: Path) -> dict[str, pa.Table]:
    """Return query ─▶ rows, for all files that tests/pinned/rows.py has written."""
    tables = {}
    for path in sorted(folder.iterdir(), key=lambda path: int(path.stem.rpartition("-")[2])):
        with pa.OSFile(str(path), "rb") as file:
            table = pa.ipc.open_file(file).read_all()
        tables[(table.schema.metadata or {})[b"query"].decode()] = table
    return tables


def changed_rows(before: pa.Table | None, after: pa.Table | None) -> Iterator[str]:
    """Yield a line for each column and some of the rows that differ between two answers."""
    if before is None or after is None:
        yield "a new answer" if before is None else "no longer asked"
        return
    names = [name for name in before.column_names if name not in COMPUTED_HERE]
    others = [name for name in after.column_names if name not in COMPUTED_HERE]
    yield from (f"column {name} is gone" for name in names if name not in others)
    yield from (f"column {name} is new" for name in others if name not in names)
    shared = [name for name in names if name in others]
    old, new = _rows(before, shared), _rows(after, shared)
    if len(old) == len(new):
        for at, name in enumerate(shared):
            if count := sum(one[at] != other[at] for one, other in zip(old, new, strict=True)):
                yield f"column {name} differs in {count} of {len(old)} rows"
    else:
        yield f"{len(old)} rows become {len(new)}"
    if Counter(old) == Counter(new) and old != new:
        yield "the rows are in another order"
    differing = [
        at for at in range(len(shared)) if {row[at] for row in old} != {r[at] for r in new}
    ]
    keys = [at for at, name in enumerate(shared) if name in ("run", "rank", "name", "step")]
    kept = sorted({*keys, *differing}) or list(range(len(shared)))
    for sign, rows in (("-", Counter(old) - Counter(new)), ("+", Counter(new) - Counter(old))):
        for row in list(rows.elements())[:SHOWN_ROWS]:
            yield f"{sign} " + ", ".join(f"{shared[at]}={row[at]}" for at in kept)


def _rows(table: pa.Table, names: list[str]) -> list[Row]:
    columns = [table.column(name).to_pylist() for name in names]
    return [tuple(map(plain, row)) for row in zip(*columns, strict=True)]


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "HEAD", sys.argv[2:] or [JOBS])
