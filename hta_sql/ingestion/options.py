"""The options of an ingest: their names, types, defaults and words stand here and nowhere else."""

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

    from hta_sql.ingestion.rank import RankResult

P = ParamSpec("P")
Options = TypeVar("Options")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class IngestOptions:
    """What to ingest, into which store, and how.

    Args:
        traces: A trace file, a folder (searched recursively), a glob, a list of these,
            or ``{rank: path}``; ``.json``, ``.json.gz`` or ``.json.zst``, local or any
            fsspec URL. Also ``trace_view.json`` of Ascend devices, and the CSV and JSON files of
            a MindSpore cluster, several of which are one rank.
        store: Folder of the store, or its fsspec URL; made where missing, else added to.
        run: Name of the run; default: the name of the folder or file.
        tags: What to remember of the run: tag ─▶ value, as the table ``run_tags`` has it. Those that it
            has already stay.
        ranks: Read only these ranks.
        jobs: Processes; default: the cores that this process may use.
        force: Read unchanged files again.
        strict: Refuse a trace with anything broken in it; default: keep what is whole, repair
            what can be repaired, and list both in the table ``quarantine``.
        rank_regex: Finds the rank in file names; its first group is the rank.
        kernel_classes: CSV with rules that go before the built-in ones
            (priority, regex, class, collective, vendor).
        memory_limit: Memory of each process that reads, for example ``"1GiB"``. Python takes
            232 MiB of it, or half where that is less; the engine has the rest.
        executor: Any ``concurrent.futures.Executor`` to run the ranks on.
        progress: Called after each rank with (result, ranks done, ranks to do).
        lock_timeout: Time to wait for another ingest that is writing the store [s].
        join_spans: Several files of a rank are spans of one run; default: each is a run of its own.
        one_job: The traces are of one job, although they state different world sizes or backends; default:
            traces of several jobs are refused, and the message lists the jobs.
        all_or_nothing: Keep nothing of an ingest that is interrupted; default: it keeps the ranks that
            it has read, which nobody sees, and the next ingest of the same traces goes on from there.
        materialize: Keep, beside the tables, the answers that are small; not of a shard.
    """

    traces: Traces
    store: str | os.PathLike[str]
    _: KW_ONLY
    run: str | None = None
    tags: Mapping[str, object] | None = None
    ranks: Iterable[int] | None = None
    jobs: int | None = None
    force: bool = False
    strict: bool = False
    rank_regex: str | None = None
    kernel_classes: str | os.PathLike[str] | None = None
    memory_limit: str | None = None
    executor: Executor | None = None
    progress: Callable[[RankResult, int, int], None] | None = None
    lock_timeout: float = LOCK_TIMEOUT_S
    join_spans: bool = False
    one_job: bool = False
    all_or_nothing: bool = False
    materialize: bool = False


@dataclass(frozen=True, kw_only=True)
class ShardOptions(IngestOptions):
    """Which part of the traces one job of an array ingests.

    Args:
        shard: ``(i, n)``: read only the i-th of n parts of the traces, counted from 1.
    """

    shard: tuple[int, int]


def called_with(
    options: Callable[P, Options],
) -> Callable[[Callable[[Options], Answer]], Callable[P, Answer]]:
    """Make a function of options one that is called with each option by its name.

    Its signature and the ``Args:`` of its documentation are those of the class.
    """

    def decorate(function: Callable[[Options], Answer]) -> Callable[P, Answer]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Answer:
            return function(options(*args, **kwargs))

        answer = inspect.signature(function).return_annotation
        signature = inspect.signature(options).replace(return_annotation=answer)
        call.__signature__ = signature  # type: ignore[attr-defined]  # inspect asks for it
        what, _, rest = (inspect.getdoc(function) or "").partition("\n\nReturns:")
        call.__doc__ = f"{what}\n\nArgs:\n{_documented(options)}\n\nReturns:{rest}"
        return call

    return decorate


def _documented(options: Callable[..., object]) -> str:
    """Collect what a class and those that it extends say of their options."""
    classes = [c for c in reversed(inspect.getmro(options)) if c.__doc__ and c is not object]  # type: ignore[arg-type]  # it is a class
    return "\n".join((inspect.getdoc(c) or "").partition("Args:\n")[2] for c in classes)
