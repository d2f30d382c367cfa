"""Define one row of torch's ``key_averages()``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FunctionAverage:
    """All calls with one key, with the attributes of torch's ``FunctionEventAvg``.

    A ``self_…`` attribute excludes callees.

    Attributes:
        key: Name of an operator, annotation, Python frame, runtime call or device operation.
        count: Number of calls.
        cpu_time_total: Time on the host [µs].
        device_time_total: Time of the launched device operations [µs].
        cpu_memory_usage: Host memory, allocated minus freed [bytes].
        device_memory_usage: Device memory, allocated minus freed [bytes].
        flops: Floating-point operations; 0 if unknown, like in torch.
        input_shapes: Shapes; ``""`` if calls are not grouped by shape.
        stack: Python frames, innermost first.
        overload_name: Overload; empty if calls are not grouped by overload.
        is_async: Whether calls end on another thread; known for gloo ranges only.
        is_user_annotation: Whether the key is a ``record_function`` range.
        use_device: ``cuda`` if the trace has device operations of any vendor; otherwise None.
        device_type: ``DeviceType.CUDA`` for device operations, otherwise ``DeviceType.CPU``.
    """

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total: float
    self_device_time_total: float
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_memory_usage: int
    self_device_memory_usage: int
    flops: int
    input_shapes: list[Any] | str
    stack: list[str]
    overload_name: str
    is_async: bool
    is_user_annotation: bool
    use_device: str | None
    device_type: str

    @property
    def cpu_time(self) -> float:
        """Mean time on the host [µs]."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Mean time on the device [µs]."""
        return self.device_time_total / self.count if self.count else 0.0
