"""The options of an ingest: the single source of their names, types, defaults and documentation."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from hta_sql.store.disk.locks import LOCK_TIMEOUT_S
from hta_sql.traces import Traces

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from hta_sql.ingestion.rank_job import RankResult

P = ParamSpec("P")
Options = TypeVar("Options")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class IngestOptions:
    """Options of an ingest: traces, target store and settings.

    Args:
        traces: A trace file, a folder (searched recursively), a glob, a list of these, or ``{rank:
            path}``; ``.json``, ``.json.gz`` or ``.json.zst``, local or any fsspec URL. Also
            ``trace_view.json`` of Ascend devices, and the CSV and JSON files of a MindSpore
            cluster, in which several files form one rank.
        store: Folder of the store, or its fsspec URL; created if missing, otherwise extended.
        run: Name of the run; default: the name of the folder or file.
        role: Role of the processes in a job with several roles, or ``{role: traces}``: files,
            folders or globs among the traces. If roles number their ranks separately, ``rank`` is
            unique in the run, and ``role_rank`` is the rank that a trace states.
        tags: Tags of the run, as in the table ``run_tags``: tag ─▶ value. Other tags of the run
            remain.
        ranks: Ingest only these ranks.
        jobs: Number of processes; default: the cores available to this process.
        force: Ingest unchanged files again.
        strict: Reject a trace with any defect; default: keep valid events, repair damaged events if
            possible, and list all repaired and lost events in the table ``quarantine``.
        rank_regex: Regular expression whose first group matches the rank in a file name.
        kernel_classes: CSV with rules that take precedence over the built-in ones (priority, regex,
            class, collective, vendor).
        captures: Captures of the graphs that the traces replay, in the same forms as ``traces``.
            Replayed kernels get the operators, shapes and modules of the capture. A rank without a
            capture uses the capture of the lowest rank. Graph captures among the traces are
            recognized by graph_capture in the file name.
        memory_limit: Memory of each reading process, for example ``"1GiB"``. Python gets 232 MiB of
            it, or half if that is less; the engine gets the rest.
        executor: Any ``concurrent.futures.Executor``, which then reads the ranks.
        progress: Called after each rank with (result, ranks done, total ranks).
        lock_timeout: Time to wait for another ingest that is writing the store [s].
        join_spans: Join several files of a rank as spans of one run; default: separate runs.
        one_job: Treat the traces as one job, although they state different world sizes or backends;
            default: traces of several jobs are rejected, and the message lists the jobs.
        all_or_nothing: Discard everything if the ingest is interrupted; default: keep the ranks
            that were read, unpublished, so that the next ingest of the same traces resumes from
            them.
        materialize: Also materialize the small answers; ignored for a shard.
        derived: Compute the derived tables (matched collectives, parts of steps, …), which SQL
            clients otherwise compute in each query; without them, the first question of Python or
            of the command line computes them, or ``hta-sql materialize``. Ignored for a shard.
    """

    traces: Traces
    store: str | os.PathLike[str]
    _: KW_ONLY
    run: str | None = None
    role: str | Mapping[str, Traces] | None = None
    tags: Mapping[str, object] | None = None
    ranks: Iterable[int] | None = None
    jobs: int | None = None
    force: bool = False
    strict: bool = False
    rank_regex: str | None = None
    kernel_classes: str | os.PathLike[str] | None = None
    captures: Traces | None = None
    memory_limit: str | None = None
    executor: Executor | None = None
    progress: Callable[[RankResult, int, int], None] | None = None
    lock_timeout: float = LOCK_TIMEOUT_S
    join_spans: bool = False
    one_job: bool = False
    all_or_nothing: bool = False
    materialize: bool = False
    derived: bool = True


@dataclass(frozen=True, kw_only=True)
class ShardOptions(IngestOptions):
    """Options of a job in a job array that ingests one shard of the traces.

    Args:
        shard: ``(i, n)``: read only the i-th of n shards of the traces, counted from 1.
    """

    shard: tuple[int, int]


def called_with(
    options: Callable[P, Options],
) -> Callable[[Callable[[Options], Answer]], Callable[P, Answer]]:
    """Convert a function that takes an options object into one with a parameter for each option.

    The signature and the ``Args:`` section of the docstring are taken from the options class.
    """

    def decorate(function: Callable[[Options], Answer]) -> Callable[P, Answer]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Answer:
            return function(options(*args, **kwargs))

        answer = inspect.signature(function).return_annotation
        signature = inspect.signature(options).replace(return_annotation=answer)
        call.__signature__ = signature  # type: ignore[attr-defined]  # read by inspect
        what, _, rest = (inspect.getdoc(function) or "").partition("\n\nReturns:")
        call.__doc__ = f"{what}\n\nArgs:\n{_documented(options)}\n\nReturns:{rest}"
        return call

    return decorate


def _documented(options: Callable[..., object]) -> str:
    """Return the ``Args:`` sections of an options class and its base classes."""
    classes = [c for c in reversed(inspect.getmro(options)) if c.__doc__ and c is not object]  # type: ignore[arg-type]  # options is a class
    return "\n".join((inspect.getdoc(c) or "").partition("Args:\n")[2] for c in classes)
