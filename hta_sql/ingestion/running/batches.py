"""Groups small ranks into batches, to share the cost of statements and to use all workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hta_sql.ingestion.rank_job import RankJob
from hta_sql.traces.unpack import COMPRESSED_SUFFIXES

BATCH_BYTES = 64 << 20
"""Maximum text of a batch [bytes]; for a large trace, the engine also parses this much at once."""

BATCH_RANKS = 128
"""Maximum number of ranks in a batch.

An interruption loses incomplete batches, which are a few seconds of work. With this many ranks, the
statements cost 1 ms of CPU per rank.
"""

MOST_BYTES = 12 << 20
"""Maximum text of a rank that is read together with others [bytes].

Compared with separate reading, the CPU time per rank is 1/2 at 1.4 MB, 2/3 at 7 MB, the same at 16
MB, and 10 % more at 27 MB, because separating the ranks costs time per event.
"""

WORTH_A_WORKER_BYTES = 8 << 20
"""Text [bytes] above which another batch on another worker saves more than its statements cost."""

UNPACKED_RATIO = 16
"""Approximate ratio of a trace's text to its compressed size."""

PACKED = (*COMPRESSED_SUFFIXES, ".zip")


def in_batches(jobs: Sequence[RankJob], workers: int, threads: int) -> list[list[RankJob]]:
    """Group small jobs into batches, and leave the others separate; the largest batch comes first.

    Args:
        jobs: All jobs.
        workers: Number of workers.
        threads: Number of threads of each worker.
    """
    sizes = {job.path: text_bytes(job.path, job.size) for job in jobs}
    places = Counter((job.run, job.rank) for job in jobs)
    small, batches = [], []
    for job in jobs:
        # Run and rank identify a file in a batch, so spans of one rank are not read together.
        is_one = places[job.run, job.rank] == 1
        if job.is_small and sizes[job.path] <= MOST_BYTES and is_one:
            small.append(job)
        else:
            batches.append([job])
    if small:
        total = sum(sizes[job.path] for job in small)
        wanted = max(
            -(-total // BATCH_BYTES),
            -(-len(small) // BATCH_RANKS),
            min(workers, -(-total // WORTH_A_WORKER_BYTES)),
        )
        batches += _dealt(small, sizes, min(wanted, len(small)))
    if 0 < len(batches) < workers:
        threads *= workers // len(batches)
        batches = [[replace(job, threads=threads) for job in batch] for batch in batches]
    return sorted(batches, key=lambda batch: -sum(sizes[job.path] for job in batch))


def _dealt(jobs: Sequence[RankJob], sizes: dict[str, int], count: int) -> list[list[RankJob]]:
    """Distribute jobs, the largest first, each to the batch with the smallest load."""
    batches: list[list[RankJob]] = [[] for _ in range(count)]
    loads = [0] * count
    for job in sorted(jobs, key=lambda job: -sizes[job.path]):
        least = loads.index(min(loads))
        loads[least] += sizes[job.path] + 1
        batches[least].append(job)
    return batches


def text_bytes(path: str, size: int) -> int:
    """Estimate the size of the uncompressed trace [bytes].

    Args:
        path: Path of the trace, whose suffix shows whether it is compressed.
        size: Size of the file [bytes].
    """
    is_packed = path.partition("::")[0] != path or path.endswith(PACKED)
    return size * (UNPACKED_RATIO if is_packed else 1)
