"""Render records as Kineto's JSON events, in torch's format.

Times are converted from integer nanoseconds to decimal microseconds as text. A float would lose
hundreds of nanoseconds, because a `ts` has sixteen digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from hta_sql.synthetic.records import GpuOp, RuntimeCall, StepTrace
from hta_sql.synthetic.spec import JobSpec

# One template per kind of event: formatting dominates the run time, so it is one operation.
_SPAN = (
    '  {\n    "ph": "X", "cat": "%s", "name": "%s", "pid": %d, "tid": %d,\n'
    '    "ts": %d.%03d, "dur": %d.%03d,\n    "args": {\n      %s\n    }\n  }'
)
_FLOW = (
    '  {\n    "ph": "%s", "id": %d, "pid": %d, "tid": %d, "ts": %d.%03d,\n'
    '    "cat": "%s", "name": "%s"%s\n  }'
)
_MEMORY = (
    '  {\n    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", '
    '"pid": %d, "tid": %d,\n    "ts": %d.%03d,\n    "args": {\n      '
    '"Total Reserved": %d, "Total Allocated": %d, "Bytes": %d, "Device Id": %d, '
    '"Device Type": 1, "Addr": %d, "Ev Idx": %d\n    }\n  }'
)


class StepRenderer:
    """Renderer of the steps of one rank."""

    def __init__(self, spec: JobSpec, rank: int) -> None:
        self._pid = spec.pid_of(rank)
        self._device = spec.device_of(rank)
        self._shift = spec.shift_ns(rank)
        self._index = 0

    def events(self, step: StepTrace) -> Iterator[str]:
        """Yield all events of one step: CPU events first, then CUPTI's."""
        return chain(
            self._host(step),
            self._python(step),
            self._flows(step),
            self._memory(step),
            self._gpu(step),
            self._syncs(step),
            self._calls(step),
            self._gpu_annotations(step),
        )

    def _span(
        self, category: str, name: str, lane: tuple[int, int], when: tuple[int, int], args: str
    ) -> str:
        ts, dur = when[0] + self._shift, when[1]
        values = (
            category, name, *lane, ts // 1000, ts % 1000, dur // 1000, dur % 1000, args,
        )  # fmt: skip
        return _SPAN % values

    def _arrow(self, kind: str, phase: str, flow: int, lane: tuple[int, int], ts: int) -> str:
        ts += self._shift
        end = ', "bp": "e"' if phase == "f" else ""
        return _FLOW % (phase, flow, *lane, ts // 1000, ts % 1000, kind, kind, end)

    def _next_index(self) -> int:
        self._index += 1
        return self._index - 1

    def _host(self, step: StepTrace) -> Iterator[str]:
        for event in step.host:
            args = (
                f'"External id": {event.external_id},"Record function id": 0, '
                f'{event.args}"Ev Idx": {self._next_index()}'
            )
            lane = (self._pid, event.thread)
            yield self._span(event.category, event.name, lane, (event.ts, event.dur), args)

    def _python(self, step: StepTrace) -> Iterator[str]:
        for frame in step.python:
            parent = "null" if frame.parent is None else frame.parent
            module = "" if frame.module_id is None else f'"Python module id": {frame.module_id}, '
            args = (
                f'"Python parent id": {parent}, "Python id": {frame.id}, '
                f'{module}"Ev Idx": {self._next_index()}'
            )
            lane = (self._pid, frame.thread)
            yield self._span("python_function", frame.name, lane, (frame.ts, frame.dur), args)

    def _flows(self, step: StepTrace) -> Iterator[str]:
        for point in step.flows:
            yield self._arrow("fwdbwd", point.phase, point.id, (self._pid, point.thread), point.ts)

    def _memory(self, step: StepTrace) -> Iterator[str]:
        for instant in step.memory:
            ts = instant.ts + self._shift
            yield _MEMORY % (
                self._pid, instant.thread, ts // 1000, ts % 1000, instant.reserved,
                instant.allocated, instant.bytes, self._device, instant.address,
                self._next_index(),
            )  # fmt: skip

    def _gpu(self, step: StepTrace) -> Iterator[str]:
        for op in step.gpu_ops():
            lane = (self._device, op.stream)
            yield self._span(op.kind, op.name, lane, (op.ts, op.dur), _gpu_args(op, self._device))
            yield self._arrow("ac2g", "f", op.correlation, lane, op.ts)

    def _syncs(self, step: StepTrace) -> Iterator[str]:
        for sync in step.syncs:
            args = (
                f'"cuda_sync_kind": "{sync.name}",      {sync.args}"stream": {sync.stream}, '
                f'"correlation": {sync.correlation},      "device": {self._device}, "context": 1'
            )
            lane = (self._device, sync.stream)
            yield self._span("cuda_sync", sync.name, lane, (sync.ts, sync.dur), args)

    def _calls(self, step: StepTrace) -> Iterator[str]:
        for call in step.calls:
            if not call.recorded:
                continue
            lane = (self._pid, call.thread)
            yield self._span(call.category, call.name, lane, (call.ts, call.dur), _call_args(call))
            if call.launches:
                yield self._arrow("ac2g", "s", call.correlation, lane, call.ts)

    def _gpu_annotations(self, step: StepTrace) -> Iterator[str]:
        """Yield annotation spans per stream, each covering the work launched inside it."""
        spans: dict[tuple[int, str, int], tuple[int, int]] = {}
        for op in step.gpu_ops():
            for scope in op.scopes:
                key = (scope.external_id, scope.name, op.stream)
                first, last = spans.get(key, (op.ts, op.ts))
                spans[key] = (min(first, op.ts), max(last, op.ts + op.dur))
        for (external, name, stream), (first, last) in spans.items():
            args = f'"External id": {external}'
            lane = (self._device, stream)
            yield self._span("gpu_user_annotation", name, lane, (first, last - first), args)


def _gpu_args(op: GpuOp, device: int) -> str:
    external = f'"External id": {op.external_id},      ' if op.external_id else ""
    if op.kind == "kernel":
        return (
            f'{external}"queued": 0, "device": {device}, "context": 1,      '
            f'"stream": {op.stream}, "correlation": {op.correlation},      {op.args}'
        )
    return (
        f'{external}"device": {device}, "context": 1,      '
        f'"stream": {op.stream}, "correlation": {op.correlation},      '
        f'"bytes": {op.bytes}, "memory bandwidth (GB/s)": {op.bytes / op.dur!r}'
    )


def _call_args(call: RuntimeCall) -> str:
    external = f'"External id": {call.external_id},      ' if call.external_id else ""
    return f'{external}"cbid": {call.cbid}, "correlation": {call.correlation}'
