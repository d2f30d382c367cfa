"""Write trace files in Kineto's format: header, events in order of recording, trailer."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, cast

from hta_sql.synthetic.records import StepTrace
from hta_sql.synthetic.render import StepRenderer
from hta_sql.synthetic.spec import JobSpec

_METADATA = (
    '  {\n    "name": "%s", "ph": "M", "ts": %s, "pid": %s, "tid": %d,\n'
    '    "args": {\n      "%s": %s\n    }\n  }'
)
_WINDOW = (
    '  {\n    "ph": "X", "cat": "Trace", "ts": %s, "dur": %s,\n'
    '    "pid": "Spans", "tid": "PyTorch Profiler",\n'
    '    "name": "PyTorch Profiler (0)",\n'
    '    "args": {\n      "Op count": 0\n    }\n  }'
)
_INSTANT = (
    '  {\n    "name": "%s", "ph": "i", "s": "g",\n    "pid": "%s", "tid": "%s", "ts": %s\n  }'
)


def microseconds(ns: int) -> str:
    """Format nanoseconds as decimal microseconds, like Kineto."""
    return f"{ns // 1000}.{ns % 1000:03d}"


@contextmanager
def rank_writer(path: Path, spec: JobSpec, rank: int) -> Iterator[RankWriter]:
    """Open the writer of a rank's trace; write the trailer at the end unless an error occurs."""
    with ExitStack() as opened:
        file: IO[bytes] = opened.enter_context(path.open("wb"))
        if spec.gzip:
            # Without name and time in the gzip header, equal jobs give equal bytes.
            packed = gzip.GzipFile("", "wb", 3, file, mtime=0)
            file = cast("IO[bytes]", opened.enter_context(packed))
        writer = RankWriter(file, spec, rank)
        yield writer
        writer.finish(path.name)


class RankWriter:
    """Writer of the trace of one rank, step by step."""

    def __init__(self, file: IO[bytes], spec: JobSpec, rank: int) -> None:
        self.event_count = 0
        self._file = file
        self._spec = spec
        self._pid = spec.pid_of(rank)
        self._device = spec.device_of(rank)
        self._shift = spec.shift_ns(rank)
        self._renderer = StepRenderer(spec, rank)
        self._end = spec.start_ns
        self._streams: set[int] = set()
        self._separator = ""
        self._text(_header(spec, rank))

    def finish(self, name: str) -> None:
        """Write the final events and the name of the trace."""
        self._write(self._epilogue())
        self._text(f'\n  ],\n  "traceName": {json.dumps(name)}\n}}\n')

    def write_step(self, step: StepTrace) -> None:
        """Append all events of one step."""
        self._write(self._renderer.events(step))
        self._end = max(self._end, step.ts + step.dur)
        for op in step.gpu_ops():
            self._streams.add(op.stream)
            self._end = max(self._end, op.ts + op.dur)

    def _write(self, events: Iterator[str]) -> None:
        texts = list(events)
        self.event_count += len(texts)
        if texts:
            self._text(self._separator + ",\n".join(texts))
            self._separator = ",\n"

    def _text(self, text: str) -> None:
        self._file.write(text.encode())

    def _epilogue(self) -> Iterator[str]:
        """Yield the events that torch writes last: process and thread names, and the window."""
        spec = self._spec
        start = microseconds(spec.start_ns + self._shift)
        pid = self._pid
        yield _METADATA % ("process_name", start, pid, 0, "name", '"python"')
        yield _METADATA % ("process_labels", start, pid, 0, "labels", '"CPU"')
        yield _METADATA % ("process_sort_index", start, pid, 0, "sort_index", pid)
        for device in range(min(8, spec.ranks)):
            yield _METADATA % ("process_name", start, device, 0, "name", '"python"')
            label = f'"GPU {device}"'
            yield _METADATA % ("process_labels", start, device, 0, "labels", label)
            order = 5_000_000 + device
            yield _METADATA % ("process_sort_index", start, device, 0, "sort_index", order)
        for stream in sorted(self._streams):
            lane = (start, self._device, stream)
            yield _METADATA % ("thread_name", *lane, "name", f'"stream {stream} "')
            yield _METADATA % ("thread_sort_index", *lane, "sort_index", stream)
        for thread, name in ((pid, "python"), (pid + 80, "pt_autograd_0")):
            label = f'"thread {thread} ({name})"'
            yield _METADATA % ("thread_name", start, pid, thread, "name", label)
            yield _METADATA % ("thread_sort_index", start, pid, thread, "sort_index", thread)
        yield from self._window(start)

    def _window(self, start: str) -> Iterator[str]:
        length = microseconds(self._end - self._spec.start_ns)
        yield _WINDOW % (start, length)
        order = ("process_sort_index", start, '"Spans"', 0, "sort_index", 536_870_912)
        yield _METADATA % order
        yield _INSTANT % (
            "Iteration Start: PyTorch Profiler", "Traces", "Trace PyTorch Profiler", start,
        )  # fmt: skip
        # The profiler stops shortly after the last step.
        end = microseconds(self._end + self._shift + 900_000)
        yield _INSTANT % ("Record Window End", "", "", end)


def _header(spec: JobSpec, rank: int) -> str:
    gpus = ",\n".join(_device_properties(device) for device in range(min(8, spec.ranks)))
    everyone = list(range(spec.ranks))
    groups = [
        {
            "pg_name": str(group),
            "pg_desc": "default_pg" if group == 0 else f"dp_{group}",
            "backend_config": "cuda:nccl",
            "pg_size": spec.ranks,
            "ranks": everyone,
        }
        for group in range(spec.comm_streams)
    ]
    distributed = {
        "backend": "nccl",
        "rank": rank,
        "world_size": spec.ranks,
        "pg_count": spec.comm_streams,
        "pg_config": groups,
        "nccl_version": "2.21.5" if spec.nccl_names == "modern" else "2.17.1",
    }
    flags = ('      "with_stack": 1,\n' if spec.python_stacks else "") + (
        '      "profile_memory": 1,\n' if spec.memory_events else ""
    )
    return (
        f'\n  {{\n    "schemaVersion": 1,\n    "deviceProperties": [\n{gpus}\n    ],\n'
        '      "cupti_version": 24,\n      "cuda_runtime_version": 12060,\n'
        '      "cuda_driver_version": 12080,\n'
        f'      "distributedInfo": {json.dumps(distributed)},\n      "record_shapes": 1,\n'
        f"{flags}"
        f'      "host_name": {json.dumps(spec.host_of(rank))},\n'
        f'      "trace_id": "{(spec.seed << 32 | rank) % (1 << 128):032X}",\n'
        '  "displayTimeUnit": "ms",\n'
        f'  "baseTimeNanoseconds": {spec.rank_base_time_ns(rank)},\n  "traceEvents": [\n'
    )


def _device_properties(device: int) -> str:
    return (
        f'    {{\n      "id": {device}, "name": "NVIDIA H100 80GB HBM3", '
        '"totalGlobalMem": 85028372480,\n      "computeMajor": 9, "computeMinor": 0,\n'
        '      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,\n'
        '      "regsPerBlock": 65536, "warpSize": 32,\n'
        '      "sharedMemPerBlock": 49152, "numSms": 132\n'
        '    , "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 232448, '
        '"sharedMemPerMultiprocessor": 233472\n    }'
    )
