"""The chunks of one trace, or of several small traces that are read one after the other."""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from hta_sql.errors import HtaSqlError
from hta_sql.ingestion.call_tree import PART_BITS
from hta_sql.ingestion.fingerprints import ChangedWhileReadError
from hta_sql.ingestion.native import CHUNK_BITS
from hta_sql.traces.chunks import Chunk, TraceReader

log = logging.getLogger(__name__)


class TraceBatch:
    """Traces whose events are staged together, numbered by their position in the batch.

    Errors and flaws of a single trace are handled by the caller. Of several traces, those with an
    error or a flaw are left out, to be ingested alone, so that they do not affect the others.

    Args:
        sources: Context that opens each trace, and checks at its end that the file did not change.
        first_event_ids: Id of the first event of each trace.

    Attributes:
        readers: Number of the trace ─▶ its reader, once it is opened.
        left_out: Numbers of the traces that must be ingested alone.
    """

    def __init__(
        self,
        sources: Sequence[AbstractContextManager[TraceReader]],
        first_event_ids: Sequence[int],
    ) -> None:
        self.is_alone = len(sources) <= 1
        self.readers: dict[int, TraceReader] = {}
        self.left_out: set[int] = set()
        self._sources = sources
        firsts = enumerate(first_event_ids)
        self._first_ids = [first + (part << PART_BITS) for part, first in firsts]
        self.next_ids = list(self._first_ids)
        """Id of the next event of each trace."""

    @property
    def reader(self) -> TraceReader | None:
        """The reader of a single trace; None if there is none, or several."""
        return self.readers.get(0) if self.is_alone else None

    def chunks(self) -> Generator[Chunk, None, None]:
        """Yield the chunks of all traces; the upper bits of their numbers are those of the trace."""
        for part, source in enumerate(self._sources):
            if self.is_alone:
                yield from self._chunks(part, source)
                continue
            try:
                yield from self._chunks(part, source)
                if self.readers[part].problems:
                    self.leave_out([part])
            except (HtaSqlError, ChangedWhileReadError, OSError) as error:
                log.info("Trace %d of a batch is read separately: %s", part, error)
                self.leave_out([part])

    def _chunks(self, part: int, source: AbstractContextManager[TraceReader]) -> Iterator[Chunk]:
        with source as reader:
            self.readers[part] = reader
            for chunk in reader:
                if part in self.left_out:
                    return
                yield replace(chunk, number=(part << CHUNK_BITS) + chunk.number) if part else chunk

    def leave_out(self, parts: Collection[int]) -> None:
        """Exclude traces that must be ingested alone."""
        self.left_out |= set(parts)

    def count(self, events: Mapping[int, int]) -> None:
        """Add a number of events to each trace."""
        for part, number in events.items():
            self.next_ids[part] += number

    def event_count(self, part: int) -> int:
        """Return the number of events of a trace that were read, including lost events."""
        return self.next_ids[part] - self._first_ids[part]
