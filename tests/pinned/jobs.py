"""The jobs whose answers are pinned, each with a different feature, all in one catalog."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from hta_sql.api import ingest_shard
from hta_sql.authoring.golden_engine import materialize_derived
from hta_sql.library import sqltext
from hta_sql.library.objects import load_library
from hta_sql.library.sql_files import stored_columns
from hta_sql.store.catalog.build import put_tables
from hta_sql.store.catalog.columns import stored_files
from hta_sql.store.catalog.template import CONFIG, template
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.manifest import Manifest
from hta_sql.store.disk.shard_files import read_shards
from hta_sql.synthetic import write_job as write_synthetic
from tests.golden_cases import TRACES
from tests.jobs.spec import MS, US, Clock, PlantedJob
from tests.jobs.traces import write_job as write_planted
from tests.properties.traces import random_job
from tests.properties.traces import write_job as write_random
from tests.spans.two_spans import write_spans
from tests.synthetic import simulated

if TYPE_CHECKING:
    from collections.abc import Mapping

CATALOG = "pinned.duckdb"

Runs = dict[str, dict[int, str]]
"""Traces by run and rank; negative ranks are discovered from the files."""

SPANS = "spans"
"""Name of the run whose ranks were recorded twice."""

SECOND_NS = 1_000_000_000
"""Interval between the ingests of two runs."""

EVERYTHING = replace(simulated.EVERYTHING, ops_per_layer=4, base_shifts_ns={})
"""Options that enable everything that the trace simulator can write."""

PLANTED: Mapping[str, PlantedJob] = {
    "late": PlantedJob(
        ranks=4,
        steps=6,
        layers=1,
        tp=2,
        hosts=2,
        slower_clock={3: 1.3},
        clocks={2: Clock(3 * MS, 5e-5), 3: Clock(3 * MS, 5e-5)},
        starts_late={1: 1 * MS},
        overlap=True,
    ),
    "loading": PlantedJob(
        ranks=2, steps=7, layers=1, loading={1: 1 * MS}, waits_in_calls=True, metadata="without seq"
    ),
    "experts": PlantedJob(
        ranks=4, steps=4, layers=1, experts=4, host_bound={2: 60 * US}, lost={1: (5,)}
    ),
    "pipeline": PlantedJob(
        ranks=4, steps=4, layers=1, stages=2, micro_batches=2, bigger_batch={2: 1.4}
    ),
    "out of step": PlantedJob(
        ranks=3, steps=5, layers=1, extra_collective={1: 3}, other_type={2: 1}, throttled={0: 1.5}
    ),
}

TINY = (
    *("call_stacks", "gap_causes", "memory_of_training", "module_with_backward", "graph_replays"),
    *("operator_kinds", "matrix_types", "path_stream_waits", "value_read_by_host", "every_table"),
    "recorded_with_everything",
)

RECORDED = TRACES / "recorded"

FAULTS = ("row_loop", "slow_loader", "unfused_optimizer")

COMMITTED: Mapping[str, list[Path]] = {
    "training": [RECORDED / "mlp_cpu_torch_2_13.json.gz"],
    "gloo": [RECORDED / "gloo" / f"rank{rank}.json.gz" for rank in (0, 1)],
    "faults": [RECORDED / "faults" / name / "rank0.json.gz" for name in FAULTS],
    "tiny": [TRACES / f"{name}.json" for name in TINY],
}
"""Files of tests/traces by run, one per rank."""


def write_jobs(folder: Path) -> Runs:
    """Write the traces of all jobs; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    runs: Runs = {}
    files = write_synthetic(folder / "everything", EVERYTHING).files
    runs["everything"] = {rank: str(path) for rank, path in enumerate(files)}
    for name, job in PLANTED.items():
        runs[name.replace(" ", "_")] = write_planted(folder / name, replace(job, noise=0.02))[0]
    for name, paths in COMMITTED.items():
        runs[name] = {rank: str(path) for rank, path in enumerate(paths)}
    for name, ranks in write_random(random_job(2), folder).items():
        runs[f"random_{name}"] = ranks
    files = sorted(write_spans(folder / SPANS).iterdir())
    runs[SPANS] = {-1 - place: str(path) for place, path in enumerate(files)}
    return runs


def read_jobs(runs: Runs, store: Path) -> None:
    """Ingest each run without a catalog, joining two recordings of a rank into one run."""
    for run, ranks in runs.items():
        traces = list(ranks.values()) if min(ranks) < 0 else ranks
        ingest_shard(traces, store, run=run, jobs=1, shard=(1, 1), join_spans=run == SPANS)


def make_catalog(folder: Path, runs: Runs) -> None:
    """Ingest all runs into one catalog, with the derived tables."""
    read_jobs(runs, folder / "job.store")
    store = store_folder(folder / "job.store")
    entries = [entry for shard in read_shards(store) for entry in shard.entries]
    # The runs were ingested one after the other.
    read_at = {run: SECOND_NS * at for at, run in enumerate(runs)}
    entries = [replace(entry, ingested_ns=read_at[entry.run]) for entry in entries]
    library = load_library()
    shutil.copyfile(template(library), folder / CATALOG)
    with duckdb.connect(str(folder / CATALOG), config=CONFIG) as con:
        put_tables(con, store, stored_files(Manifest().with_entries(entries), store), library)
        for name in stored_columns():
            # Opening thirty files costs more than querying so few events.
            view = f"stored.{sqltext.identifier(name)}"
            con.execute(sqltext.create_table(f"read_{name}", f"FROM {view}"))
            con.execute(sqltext.view_of(view, f"read_{name}"))
        materialize_derived(con, library, {about.path for about in library.derived})
