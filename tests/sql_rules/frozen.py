"""Lock of released analyses: what they compute is recorded in sql/analyses/frozen.csv.

A release is a heading with a version and a date in CHANGELOG.md. From then on every stable analysis
whose ``Since`` is not later must be in the lock, which ``make freeze`` writes. It only adds lines.

An analysis is locked with everything that it depends on: its own text, and the macros, tables and
CSV files under it, without their comments and without the wording in sql/messages. A sentence can thus
be corrected. The codes and placeholders that an analysis relies on are checked by messages.py. Each
object of the lock has a line:

    object       analysis, macro or table: ``kpis_v1``, ``run_kpis``, ``gpu_ops``
    definition   SHA-256 of its text without comments; for an analysis, with all its dependencies
    answers      for an analysis, SHA-256 of its pinned and golden answers without their sentences

If a macro under a released analysis changes and no pinned or golden answer does, ``--refreeze``
(``make refreeze``) locks the new definition. It needs a line in CHANGELOG.md that begins with
"Refrozen:" and names the macro and the reason. If an answer changes, the analysis needs a new version.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

from hta_sql.authoring.golden import Case, cells, parse_cases
from hta_sql.library.answers import definition_digest
from hta_sql.library.messages import SENTENCES
from hta_sql.library.objects import Library, SqlObject, parse_library

LOCK = Path("analyses", "frozen.csv")
_RELEASE = re.compile(r"^##\s+\[?v?(\d+(?:\.\d+)+)\]?.*\d{4}-\d{2}-\d{2}", re.MULTILINE)
_REFROZEN = re.compile(r"^- Refrozen: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Locked:
    """One line of the lock."""

    object: str
    definition: str
    answers: str = ""


Lock = dict[str, Locked]


def frozen_problems(library: Library, root: Path) -> Iterator[str]:
    """Yield a problem for each released analysis that changed, vanished or is not locked."""
    lock = read_lock(root)
    current = {analysis.name: analysis for analysis in library.analyses}
    for name, locked in lock.items():
        if not locked.answers:
            continue
        if name not in current:
            yield f"{root / 'analyses'}: {name} was released and is gone; restore it."
        elif _closure_digest(library, current[name]) != locked.definition:
            yield _why_changed(library, root, current[name], lock)
    for analysis in released(library, root):
        if analysis.name not in lock:
            yield f"{analysis.path}: it is released but not frozen; run: make freeze."


def _why_changed(library: Library, root: Path, analysis: SqlObject, lock: Lock) -> str:
    """Explain which object changed under a released analysis, and what to do."""
    changed = [
        one.name
        for one in library.stands_on(analysis)
        if _own_line(one, lock) != definition_digest(one)
    ]
    newer = f"{analysis.base_name}_v{(analysis.version or 1) + 1}.sql"
    if analysis.name in changed:
        return (
            f"{analysis.path}: it was released, and a released file does not change. Restore "
            f"it and make {newer}, with a line '-- Changed: ...'."
        )
    under = ", ".join(changed) or "something that is gone"
    if answers_digest(root, analysis) == lock[analysis.name].answers:
        return (
            f"{analysis.path}: it was released, and {under} under it changed, without a change of its "
            "pinned answers. Give the reason in CHANGELOG.md ('- Refrozen: NAME: reason') and run: "
            "make refreeze."
        )
    return (
        f"{analysis.path}: it was released, and {under} under it changed its pinned answers. Restore "
        f"that, and make {newer} on a macro of its own, with a line '-- Changed: ...'."
    )


def _own_line(one: SqlObject, lock: Lock) -> str | None:
    locked = lock.get(_own_name(one))
    return locked.definition if locked else None


def _own_name(one: SqlObject) -> str:
    """Return the lock name of an object alone; an analysis has a second line for its closure."""
    return f"{one.name} alone" if one.version else one.name


def freeze(root: Path) -> list[str]:
    """Lock every released analysis that is not locked yet; return their names."""
    lock, library = read_lock(root), parse_library(root)
    added = [analysis for analysis in released(library, root) if analysis.name not in lock]
    if added:
        _write(root, {**lock, **_lines(library, root, added)})
    return sorted(analysis.name for analysis in added)


def refreeze(root: Path) -> list[str]:
    """Lock the new definition of analyses whose macros changed and whose answers did not.

    Returns:
        The names of the analyses. An analysis is skipped unless CHANGELOG.md has a reason for every
        changed macro.
    """
    lock, library = read_lock(root), parse_library(root)
    reasons = " ".join(_REFROZEN.findall(_changelog(root)))
    renewed = []
    for analysis in library.analyses:
        locked = lock.get(analysis.name)
        if not locked or _closure_digest(library, analysis) == locked.definition:
            continue
        under = library.stands_on(analysis)
        changed = [one.name for one in under if _own_line(one, lock) != definition_digest(one)]
        has_reasons = changed and all(re.search(rf"\b{re.escape(n)}\b", reasons) for n in changed)
        is_same = analysis.name not in changed and answers_digest(root, analysis) == locked.answers
        if has_reasons and is_same:
            renewed.append(analysis)
    _write(root, {**lock, **_lines(library, root, renewed)})
    return sorted(analysis.name for analysis in renewed)


def _lines(library: Library, root: Path, analyses: Iterable[SqlObject]) -> Lock:
    """Return the lines of analyses and of everything they depend on."""
    lines: Lock = {}
    for analysis in analyses:
        for one in library.stands_on(analysis):
            lines[_own_name(one)] = Locked(_own_name(one), definition_digest(one))
        digest = _closure_digest(library, analysis)
        lines[analysis.name] = Locked(analysis.name, digest, answers_digest(root, analysis))
    return lines


def _write(root: Path, lock: Lock) -> None:
    with (root / LOCK).open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(field.name for field in fields(Locked))
        lines.writerows(astuple(lock[name]) for name in sorted(lock))


def read_lock(root: Path) -> Lock:
    """Return the lines of the lock by object name."""
    path = root / LOCK
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["object"]: replace(Locked("", ""), **row) for row in csv.DictReader(file)}


def _closure_digest(library: Library, analysis: SqlObject) -> str:
    """Hash an analysis together with everything that it depends on, independent of paths."""
    parts = sorted(f"{one.name} {definition_digest(one)}" for one in library.stands_on(analysis))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def answers_digest(root: Path, analysis: SqlObject) -> str:
    """Hash the expected answers of an analysis in pinned and golden tests, without messages."""
    tests = root.parent / "tests"
    golden = tests / "golden" / analysis.topic / f"{analysis.name}.test"
    text = golden.read_text("utf-8") if golden.exists() else ""
    parts = [_without_sentences(case) for case in parse_cases(golden, text)]
    for pinned in sorted((tests / "pinned").glob("*.csv")):
        lines = pinned.read_text("utf-8").splitlines()
        parts += [line for line in lines if re.match(rf'"?FROM {analysis.name}\(', line)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _without_sentences(case: Case) -> str:
    names, *rows = cells(case.expected)
    kept = [at for at, name in enumerate(names) if name not in SENTENCES]
    lines = ["  ".join(row[at] for at in kept if at < len(row)) for row in (names, *rows)]
    return "\n".join([case.traces, case.call, *lines])


def released(library: Library, root: Path) -> list[SqlObject]:
    """Return the stable analyses that are part of the last release."""
    releases = [_parts(version) for version in _RELEASE.findall(_changelog(root))]
    if not releases:
        return []
    last = max(releases)
    return [
        analysis
        for analysis in library.analyses
        if analysis.status == "stable" and _parts(analysis.facts.get("Since", "0")) <= last
    ]


def _changelog(root: Path) -> str:
    changelog = root.parent / "CHANGELOG.md"
    return changelog.read_text(encoding="utf-8") if changelog.exists() else ""


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
