"""The size of the plan of each analysis: ``python -m tests.pinned.plans`` writes plans.csv anew.

Whatever the data, an operator of a plan costs 0.2 to 3 ms, so the number of operators is the time
that an analysis of a small store takes.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

import hta_sql
from hta_sql.library import sqltext
from hta_sql.library.objects import load_library
from hta_sql.synthetic import JobSpec, write_job

PINNED = Path(__file__).with_name("plans.csv")


def write_store(folder: Path) -> Path:
    """Ingest a small job of two ranks; return its catalog."""
    job = write_job(folder / "traces", JobSpec(ranks=2, steps=2, layers=1))
    with hta_sql.ingest(job.files[0].parent, folder / "job.store") as store:
        return Path(store.catalog_path)


def plan_sizes(catalog: Path) -> dict[str, int]:
    """Return the number of operators of each analysis that needs no parameters."""
    with duckdb.connect(str(catalog), read_only=True) as con:
        con.execute("SET explain_output = 'physical_only'")
        return {
            analysis.base_name: sum(map(_operators, _plan(con, analysis.name)))
            for analysis in sorted(load_library().newest(), key=lambda one: one.base_name)
            if all(parameter.default is not None for parameter in analysis.parameters)
        }


def pinned_sizes() -> dict[str, int]:
    """Return the numbers in plans.csv."""
    with PINNED.open(encoding="utf-8", newline="") as file:
        return {line["analysis"]: int(line["operators"]) for line in csv.DictReader(file)}


def _plan(con: duckdb.DuckDBPyConnection, macro: str) -> Iterator[dict[str, Any]]:
    ((_, text),) = con.execute(f"EXPLAIN (FORMAT json) {sqltext.call(macro, {})}").fetchall()
    yield from json.loads(text)


def _operators(node: dict[str, Any]) -> int:
    return 1 + sum(map(_operators, node.get("children", ())))


def main() -> None:
    """Write plans.csv."""
    with tempfile.TemporaryDirectory() as folder:
        sizes = plan_sizes(write_store(Path(folder)))
    with PINNED.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["analysis", "operators"])
        lines.writerows(sizes.items())


if __name__ == "__main__":
    main()
