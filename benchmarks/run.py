"""Benchmark hta_sql side by side with HolisticTraceAnalysis and bare JSON parsers.

    python benchmarks/run.py                               # real jobs if there are any
    python benchmarks/run.py --traces FOLDER --repeat 5
    python benchmarks/run.py --size 400000 --size 2000000  # synthetic, events per rank

Every measurement is a fresh process. HTA and the parsers are in a separate environment, which the
first run installs. Results: a table on stdout, every sample in benchmarks/work/results.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

# Run as a script: the repository itself is what is measured.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.jobs import add_job_options, find_jobs  # noqa: E402
from benchmarks.peers import WORK, peers_python, versions  # noqa: E402
from benchmarks.report import as_json, markdown_report, targets_report, text_report  # noqa: E402
from benchmarks.rounds import measure_job  # noqa: E402
from hta_sql.machine import cpu_count  # noqa: E402

PACKAGES = ["duckdb", "pyarrow", "traceinsight", "pandas", "orjson", "pysimdjson", "isal"]


def main() -> int:
    """Measure, print and save; return 1 if --targets is given and a target is missed."""
    options = _options()
    peers = peers_python()
    jobs = find_jobs(options.traces, options.size, options.ranks)
    outcomes = [
        measure_job(job, peers, options.repeat, with_hta=not options.without_hta) for job in jobs
    ]
    environment = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": cpu_count(),
        "ours": versions(sys.executable, PACKAGES),
        "peers": versions(peers, PACKAGES),
        "repeat": options.repeat,
    }
    results = as_json(outcomes, environment)
    WORK.mkdir(parents=True, exist_ok=True)
    partial = WORK / f"results.{os.getpid()}.partial"
    partial.write_text(json.dumps(results, indent=1), encoding="utf-8")
    partial.replace(WORK / "results.json")
    if options.markdown:
        print(markdown_report(outcomes))
    elif options.targets:
        print(targets_report(outcomes))
    else:
        print(text_report(outcomes))
    missed = any(row["verdict"] != "PASS" for row in results["targets"])
    return 1 if options.targets and missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_job_options(parser, ranks=1)
    parser.add_argument("--without-hta", action="store_true", help="measure ourselves and parsers")
    parser.add_argument("--markdown", action="store_true", help="print the table of the README")
    parser.add_argument(
        "--targets", action="store_true", help="print only the targets; exit 1 if one is missed"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
