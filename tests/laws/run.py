"""Holds the laws against every recorded job: ``python -m tests.laws.run [OPTIONS] [FOLDER ...]``.

Each job is written, changed and analyzed by itself. Results are kept, so that a run continues where
the previous one stopped; they are computed again after a change of sql/, of the package or of the laws.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from hta_sql.library.sql_files import sql_root
from tests.laws.held import ALL, broken_by
from tests.laws.jobs import Job, jobs_of

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "traces"
RECORDED = ROOT / "tests" / "traces" / "recorded"
KEPT = ROOT / ".hta_sql" / "laws"
DAMAGED = "malformed"
"""Folder of files that are damaged on purpose, for which nothing follows from a change."""


def main(arguments: Sequence[str]) -> int:
    """Hold the laws; return 1 if an answer breaks one."""
    options = _options(arguments)
    at, count = (int(part) for part in options.shard.split("/"))
    folders = [Path(name) for name in options.folders] or list(_folders())
    broken_count = 0
    for folder in folders[at - 1 :: count]:
        for job in jobs_of(folder):
            for line in _lines(job, options.laws, options.analyses):
                broken_count += 1
                print(line, flush=True)  # noqa: T201 (the result of a command)
    return int(broken_count > 0)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.laws.run")
    parser.add_argument("folders", nargs="*", help="folders with the traces of a job; default: all")
    parser.add_argument("--shard", default="1/1", help="only every N-th folder, from the I-th: I/N")
    parser.add_argument("--laws", type=_names, default=list(ALL), help="names of laws")
    parser.add_argument("--analyses", type=_names, default=[], help="names of analyses")
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    return text.split(",")


def _folders() -> Iterator[Path]:
    """Yield the folders with traces, those with the largest files first."""
    files = [path for top in (SHARED, RECORDED) if top.exists() for path in top.rglob("*.*")]
    folders = sorted({path.parent for path in files if path.parent.name != DAMAGED})
    sizes = dict.fromkeys(folders, 0)
    for path in files:
        if path.parent in sizes:
            sizes[path.parent] += path.stat().st_size if path.is_file() else 0
    yield from sorted(sizes, key=lambda folder: -sizes[folder])


def _lines(job: Job, laws: Sequence[str], analyses: Sequence[str]) -> list[str]:
    """Return the answers for a job that break a law, from a previous run if nothing changed."""
    kept = KEPT / f"{job.name}-{_digest(job, laws, analyses)}.json"
    if kept.exists():
        return list(json.loads(kept.read_text(encoding="utf-8"))["broken"])
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        found = broken_by([job], Path(folder) / "laws", laws, analyses)
    lines = [str(one) for one in found if not one.exemption]
    result = {
        "broken": lines,
        "exempt": [asdict(one) for one in found if one.exemption],
        "cpu_s": round(time.process_time() - started, 1),
    }
    KEPT.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(result, indent=1), encoding="utf-8")
    return lines


def _digest(job: Job, laws: Sequence[str], analyses: Sequence[str]) -> str:
    """Return a digest of everything that a result depends on."""
    digest = hashlib.sha256(repr((job.name, laws, analyses)).encode())
    for top in (sql_root(), ROOT / "hta_sql", Path(__file__).parent):
        for path in sorted(top.rglob("*")):
            if path.suffix in (".sql", ".csv", ".py"):
                digest.update(path.read_bytes())
    for rank, trace in job.ranks.items():
        digest.update(repr((rank, trace)).encode())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
