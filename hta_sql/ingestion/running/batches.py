"""Which small ranks are read together: so many that the statements are paid once, and every worker has some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hta_sql.ingestion.rank import RankJob
from hta_sql.traces.unpack import COMPRESSED_SUFFIXES

BATCH_BYTES = 64 << 20
"""Text that is read together: what the engine parses at once of a large trace, too."""

BATCH_RANKS = 128
"""Ranks that are read together: what is interrupted loses those that were not read to their end, some
seconds of work; statements for so many cost a millisecond of CPU a rank."""

MOST_BYTES = 12 << 20
"""Text of a rank up to which reading it with others is cheaper: of 1.4 MB each half the CPU, of 7 MB two
thirds, of 16 MB all of it, of 27 MB a tenth more, since telling ranks apart costs by the event."""

WORTH_A_WORKER_BYTES = 8 << 20
"""Text of a batch from which a second worker gains more than its own statements cost."""

UNPACKED_RATIO = 16
"""Text of a trace by its compressed size, about."""

PACKED = (*COMPRESSED_SUFFIXES, ".zip")


def in_batches(jobs: Sequence[RankJob], workers: int, threads: int) -> list[list[RankJob]]:
    """Part jobs into batches, the largest first; those that are not small are alone.

    Args:
        jobs: All jobs.
        workers: How many can run at once.
        threads: Of each of them.
    """
    sizes = {job.path: text_bytes(job.path, job.size) for job in jobs}
    places = Counter((job.run, job.rank) for job in jobs)
    small, batches = [], []
    for job in jobs:
        # Files are told apart by run and rank: the spans of one are not read together.
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
    """Deal jobs out, the largest first, each to the batch with least so far."""
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
        path: Path of the trace, whose suffix says whether it is compressed.
        size: Size of the file [bytes].
    """
    is_packed = path.partition("::")[0] != path or path.endswith(PACKED)
    return size * (UNPACKED_RATIO if is_packed else 1)
