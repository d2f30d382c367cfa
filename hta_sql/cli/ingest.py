"""``hta-sql ingest``: ingests traces into a store."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hta_sql.cli.messages import logged, note, rank_progress
from hta_sql.cli.options import INTEGERS, MEMORY_SIZE, SHARD, materialize_option, tag_option
from hta_sql.store import STORE_NAME
from hta_sql.store.disk.locks import LOCK_TIMEOUT_S
from hta_sql.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hta_sql.store.disk.manifest import RankEntry
    from hta_sql.store.disk.reports import IngestReport


def _role_of(
    _: click.Context, __: click.Parameter, values: tuple[str, ...]
) -> str | dict[str, list[str]] | None:
    """Convert ``ROLE`` to one role for all traces, and ``ROLE=PATH`` to role ─▶ paths."""
    if not values:
        return None
    found: dict[str, list[str]] = {}
    for value in values:
        role, equals, path = value.partition("=")
        if not equals and len(values) > 1:
            raise click.BadParameter(
                f"{value!r} applies to all traces, so it must be the only --role"
            )
        if equals and not path:
            raise click.BadParameter(f"{value!r} is not of the form ROLE=PATH")
        found.setdefault(role, []).append(path)
    return found if "=" in values[0] else values[0]


@click.command(short_help="Read traces into a store.")
@click.argument("traces", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    "store",
    type=click.Path(file_okay=False),
    show_default=f"{STORE_NAME} inside TRACES, if that is one folder",
    help="Folder or URL of the store; an existing store is extended.",
)
@click.option(
    "--run", metavar="NAME", show_default="the folder's or file's", help="Name of the run."
)
@tag_option("Tag of the run, for example git_sha=8c1f0e. May be repeated.")
@click.option(
    "--role",
    multiple=True,
    metavar="ROLE[=PATH]",
    callback=_role_of,
    help="Role of the processes: of all traces, or of those at or below PATH. May be repeated.",
)
@click.option("--ranks", type=INTEGERS, help="Read only these ranks, for example 0,1-3.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    show_default="cores",
    help="Number of processes.",
)
@click.option("--force", is_flag=True, help="Read unchanged files again.")
@click.option(
    "--rank-regex",
    metavar="RE",
    help="Regular expression whose first group matches the rank in file names.",
)
@click.option(
    "--kernel-classes",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CSV of rules that precede the built-in ones: priority, regex, class, collective, vendor.",
)
@click.option(
    "--captures",
    metavar="DIR",
    help="Traces of the capture of the replayed graphs: a folder, file or glob. Files named "
    "graph_capture among TRACES are recognized.",
)
@click.option(
    "--memory-limit", type=MEMORY_SIZE, help="Memory of each reading process, such as 1GiB."
)
@click.option(
    "--shard",
    type=SHARD,
    help="Read only this shard of the traces, for example 3/16: one job of an array. After the "
    "last: hta-sql publish STORE.",
)
@click.option(
    "--executor",
    metavar="NAME",
    default="processes",
    help="Where to read the ranks: processes (of this machine) or dask://HOST:PORT.",
)
@click.option(
    "--lock-timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=LOCK_TIMEOUT_S,
    help="Time to wait for another ingest that is writing the store.",
)
@click.option(
    "--join-spans",
    is_flag=True,
    help="Join several files of a rank into one run, as spans of schedule(repeat=2).",
)
@click.option(
    "--one-job",
    is_flag=True,
    help="Read the traces as one job although they look like those of several jobs.",
)
@click.option(
    "--all-or-nothing",
    is_flag=True,
    help="Discard everything if the ingest is interrupted; otherwise the next one resumes it.",
)
@materialize_option
@click.option(
    "--no-derived",
    "derived",
    is_flag=True,
    flag_value=False,
    default=True,
    show_default=False,
    help="Do not compute derived tables; hta-sql materialize or the first question does.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print more messages.")
def ingest(
    *,
    traces: tuple[str, ...],
    store: str | None,
    shard: tuple[int, int] | None,
    executor: str,
    verbose: bool,
    **options: Any,
) -> None:
    """Ingest Kineto traces into a store.

    TRACES are files, folders (searched recursively), globs or fsspec URLs; .json, .json.gz or
    .json.zst. All traces of one call form one run, like the ranks of one job. A second file of a
    rank is another capture, NAME-capture2, or with --join-spans a span of the same run. Ingest jobs
    to compare with one call each: hta-sql ingest FOLDER --run NAME -o STORE. Unchanged files that
    the store already has are skipped. The ranks become visible to readers together, at the end.
    Files into which several ranks were merged (TraceLens' TraceFuse, SGLang's merged-*.trace.json.gz)
    are split into their ranks. Traces of Ascend devices (trace_view.json) and MindSpore's cluster data
    (step_trace_raw_N_detail_time.csv, hccl_raw_N.csv and related files) are supported as well.
    So are Flight Recorder dumps of torch.distributed (nccl_trace_rank_N, or JSON), next to the
    traces of the same job or alone: hta-sql hang names the rank that blocks the job.
    Memory snapshots (torch.cuda.memory._dump_snapshot; .pickle, .pkl or JSON) are read as well,
    without unpickling them: hta-sql run STORE snapshot_peak shows what used the memory.
    Execution traces (torch.profiler.ExecutionTraceObserver) next to the traces of the same ranks
    show which operator produced the inputs of another: hta-sql run STORE execution_trace_producers.
    Files of Inductor (kernel_information.json, inductor_provenance_tracking_*.json) in a folder of
    traces show which lines of the model a kernel was compiled from: hta-sql run STORE kernel_table.
    """
    import hta_sql  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.ingestion.ingest import ingest_traces  # noqa: PLC0415
    from hta_sql.ingestion.options import IngestOptions  # noqa: PLC0415
    from hta_sql.ingestion.running.executors import executor_for  # noqa: PLC0415
    from hta_sql.store.disk.location import absolute  # noqa: PLC0415

    started = time.monotonic()
    given = [absolute(path) for path in traces]
    if options["captures"]:
        options["captures"] = absolute(options["captures"])
    folder = store or str(_store_beside(given))
    source = given[0] if len(given) == 1 else given
    with logged(verbose=verbose), executor_for(executor) as pool, rank_progress() as progress:
        options |= {"executor": pool, "progress": progress}
        if shard:
            done = hta_sql.ingest_shard(source, folder, shard=shard, **options)
            follow_up = f"hta-sql publish {folder} --expect {shard[1]}"
        else:
            # Not hta_sql.ingest, which would also open the store.
            done = ingest_traces(IngestOptions(source, folder, **options))
            follow_up = _follow_up(done, shlex.quote(folder))
    note(summary(done, time.monotonic() - started, follow_up))
    if not shard and any(result.quarantined for result in done.results):
        _note_losses(folder, done.runs)


def _note_losses(folder: str, runs: list[str]) -> None:
    """Print how much of the traces could not be read."""
    import hta_sql  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.exports.losses import loss_sentences  # noqa: PLC0415

    with hta_sql.open(folder) as opened:
        for run, sentences in loss_sentences(opened, runs).items():
            for sentence in sentences:
                note(f"warning: {run} {sentence}")


def _by_kind(entries: Iterable[RankEntry]) -> dict[str, list[RankEntry]]:
    """Group entries by the kind of their file: trace, dump, snapshot or execution trace."""
    from hta_sql.store.disk.spans import ARTIFACTS  # noqa: PLC0415 - lazy, to start faster

    found: dict[str, list[RankEntry]] = {}
    for entry in entries:
        found.setdefault(ARTIFACTS.get(entry.span, "trace"), []).append(entry)
    return found


def _follow_up(report: IngestReport, folder: str) -> str:
    """Return the commands to suggest next; after dumps, ``hang``, because such a job hung."""
    entries = (*report.results, *report.unchanged, *report.resumed)
    kinds = set(_by_kind(entries))
    of_traces = (
        f"hta-sql advice {folder}, hta-sql report {folder} -o report.html, "
        f"or hta-sql run {folder} {_first_analysis(report)}"
    )
    commands = [f"hta-sql hang {folder}"] if "dump" in kinds else []
    if "snapshot" in kinds:
        commands += [
            f"hta-sql run {folder} snapshot_summary",
            f"hta-sql run {folder} snapshot_peak",
        ]
    if "execution_trace" in kinds:
        commands.append(f"hta-sql run {folder} execution_trace_joins")
    if "trace" in kinds:
        commands.append(of_traces)
    return ", ".join(commands)


def _first_analysis(report: IngestReport) -> str:
    """Return the analysis to suggest first.

    Summaries of MindSpore and host-only traces need other analyses: they have no GPU activity.
    """
    tables = {table for entry in report.results for table in entry.files}
    if "gpu_ops" in tables or not tables & {"cpu_ops", "cluster_step_traces"}:
        return "temporal_breakdown"
    return "host_accounting" if "cpu_ops" in tables else "cluster_step_trace"


def _store_beside(traces: list[str]) -> Path:
    from hta_sql.store.disk.location import is_writable  # noqa: PLC0415

    folder = Path(traces[0])
    if len(traces) > 1 or not folder.is_dir():
        if len(traces) == 1 and not any(c in traces[0] for c in "*?[:") and not folder.exists():
            raise click.UsageError(f"No such file or folder: {traces[0]!r}")
        raise click.UsageError("Pass the path of the store: -o STORE")
    if not is_writable(folder):
        raise click.UsageError(
            f"{traces[0]!r} is not writable; pass the path of the store: -o STORE"
        )
    return folder / STORE_NAME


def summary(report: IngestReport, seconds: float, follow_up: str) -> str:
    """Return one line about what was read, what failed, and what to do next."""
    results = report.results
    read_now = _by_kind(results)
    dumps, snapshots = read_now.get("dump", []), read_now.get("snapshot", [])
    recorded = sum(entry.files.get("snapshot_events", {"rows": 0})["rows"] for entry in snapshots)
    nodes = read_now.get("execution_trace", [])
    node_count = sum(entry.files.get("et_nodes", {"rows": 0})["rows"] for entry in nodes)
    operations = sum(entry.files.get("fr_entries", {"rows": 0})["rows"] for entry in dumps)
    events = sum(result.event_count for result in results)
    quarantined = sum(result.quarantined for result in results)
    # A rank has one trace per run, and one per span.
    entries = (*results, *report.unchanged, *report.resumed)
    has_spans = any(entry.span for entry in _by_kind(entries).get("trace", []))
    what = "trace" if len(report.runs) > 1 or has_spans else "rank"
    read = []
    if trace_count := len(read_now.get("trace", [])):
        read.append(f"{counted(trace_count, what)}, {events:,} events")
    if dumps:
        read.append(f"{counted(len(dumps), 'Flight Recorder dump')}, {operations:,} operations")
    if snapshots:
        read.append(f"{counted(len(snapshots), 'memory snapshot')}, {recorded:,} allocator events")
    if nodes:
        read.append(f"{counted(len(nodes), 'execution trace')}, {node_count:,} nodes")
    # Each rank has the kernels that its job compiled.
    kernels = max(
        (entry.files.get("compiled_kernels", {"rows": 0})["rows"] for entry in results), default=0
    )
    if kernels:
        read.append(f"kernel information of {counted(kernels, 'compiled kernel')}")
    parts = [f"Read {' and '.join(read)} in {seconds:.1f} s"] if read else []
    if report.resumed:
        parts.append(f"{counted(len(report.resumed), what)} resumed from an interrupted ingest")
    if report.unchanged:
        parts.append(f"{counted(len(report.unchanged), what)} unchanged")
    if quarantined:
        parts.append(f"{counted(quarantined, 'damaged span')} quarantined (table quarantine)")
    names = f"run{'s' if len(report.runs) > 1 else ''} {', '.join(report.runs)}"
    runs = names if len(report.runs) < 4 else f"{len(report.runs)} runs"
    return f"{'; '.join(parts) or 'This shard contains no traces'} ({runs}). Next: {follow_up}"
