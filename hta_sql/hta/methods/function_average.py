"""One row of torch's ``key_averages()``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FunctionAverage:
    """All calls with one key, with the attributes of torch's ``FunctionEventAvg``.

    Attributes:
        key: Name of an operator, annotation, Python frame, runtime call or device operation.
        count: Calls.
        cpu_time_total: Time on the host [µs]; ``self_…``: in nothing that it called.
        device_time_total: Time of the device operations launched [µs]; likewise.
        cpu_memory_usage: Memory of the host allocated less freed [bytes]; likewise.
        device_memory_usage: The same of devices.
        flops: Floating-point operations; 0 where none are known, as in torch.
        input_shapes: Shapes; ``""`` where they are not told apart.
        stack: Python frames, the innermost first.
        overload_name: Overload; empty where they are not told apart.
        is_async: It ends on another thread: only ranges of gloo are known to.
        is_user_annotation: A range of ``record_function``.
        use_device: ``cuda`` where the trace has device operations, of any vendor; else None.
        device_type: ``DeviceType.CUDA`` for what ran on a device, else ``DeviceType.CPU``.
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
