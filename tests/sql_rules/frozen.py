"""Released analyses do not change: their hashes stand in sql/analyses/frozen.sha256.

A release is a heading with a version and a date in CHANGELOG.md. From then on
every stable analysis whose ``Since`` is not later has to be in the lock, which
``python -m tests.sql_rules.run --freeze`` (``make freeze``) writes. It only adds
lines: a file whose hash is there stays as it is, and a better one is its _v2.
The lock has the format of sha256sum, so ``sha256sum -c frozen.sha256`` checks it
without us.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from hta_sql.library.objects import Library, SqlObject, parse_library

LOCK = Path("analyses", "frozen.sha256")
_RELEASE = re.compile(r"^##\s+\[?v?(\d+(?:\.\d+)+)\]?.*\d{4}-\d{2}-\d{2}", re.MULTILINE)
_LINE = re.compile(r"^([0-9a-f]{64})  (\S+)$", re.MULTILINE)


def frozen_problems(library: Library, root: Path) -> Iterator[str]:
    """Yield released analyses that changed, vanished or are not locked."""
    locked = read_lock(root)
    current = {_name(analysis): analysis for analysis in library.analyses}
    for name, digest in locked.items():
        if name not in current:
            yield f"{root / 'analyses' / name}: it was released and is gone; restore it."
        elif _digest(current[name]) != digest:
            analysis = current[name]
            newer = f"{analysis.base_name}_v{(analysis.version or 1) + 1}.sql"
            yield (
                f"{analysis.path}: it was released, and a released file does not change. Restore "
                f"it and make {newer}, with a line '-- Changed: ...'."
            )
    for analysis in released(library, root):
        if _name(analysis) not in locked:
            yield f"{analysis.path}: it is released but not frozen; run: make freeze."


def freeze(root: Path) -> list[str]:
    """Lock every released analysis that is not locked yet; returns their names."""
    locked = read_lock(root)
    added = {
        _name(analysis): _digest(analysis)
        for analysis in released(parse_library(root), root)
        if _name(analysis) not in locked
    }
    if added:
        lines = [f"{digest}  {name}\n" for name, digest in sorted({**added, **locked}.items())]
        (root / LOCK).write_text("".join(lines), encoding="utf-8")
    return sorted(added)


def read_lock(root: Path) -> dict[str, str]:
    """File name below analyses/ ─▶ hash."""
    path = root / LOCK
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return {name: digest for digest, name in _LINE.findall(text)}


def released(library: Library, root: Path) -> list[SqlObject]:
    """List the stable analyses that the last release holds."""
    changelog = root.parent / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8") if changelog.exists() else ""
    releases = [_parts(version) for version in _RELEASE.findall(text)]
    if not releases:
        return []
    last = max(releases)
    return [
        analysis
        for analysis in library.analyses
        if analysis.status == "stable" and _parts(analysis.facts.get("Since", "0")) <= last
    ]


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _name(analysis: SqlObject) -> str:
    return f"{analysis.topic}/{analysis.path.name}"


def _digest(analysis: SqlObject) -> str:
    return hashlib.sha256(analysis.text.encode()).hexdigest()
