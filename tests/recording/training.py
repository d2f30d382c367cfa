"""A training job that records into a store; run by ``with_torch.py`` with an interpreter that has torch.

``python training.py STORE CASE``, or the same under torchrun.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from hta_sql.torch import trace_handler

OPTIONS: dict[str, dict[str, Any]] = {
    "advice": {"advise": True},
    "deleted": {"keep_trace": False},
    "named": {"worker_name": "trainer", "use_gzip": True, "run": "named", "role": "trainer"},
}
"""Case ─▶ options of the handler."""

STEPS = 8


def timed(handler: Callable[[Any], None]) -> Callable[[Any], None]:
    """Print how long a handler takes, without the export of the trace."""

    def call(recording: Any) -> None:
        export, spent = recording.export_chrome_trace, []

        def exported(path: str) -> None:
            began = time.perf_counter()
            export(path)
            spent.append(time.perf_counter() - began)

        recording.export_chrome_trace = exported
        began = time.perf_counter()
        handler(recording)
        total = time.perf_counter() - began
        line = f"overhead {(total - sum(spent)) * 1e3:.1f} ms, export {sum(spent) * 1e3:.1f} ms"
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    return call


def killed(_: object) -> None:
    """Kill this process instead of recording."""
    time.sleep(1)  # the other rank records meanwhile
    os.kill(os.getpid(), signal.SIGKILL)


def train(model: torch.nn.Module, case: str) -> None:
    """Run one step."""
    model(torch.randn(16, 128)).sum().backward()
    if case == "raises":
        raise RuntimeError("the training fails")


def main(store: str, case: str) -> None:
    """Train and record."""
    rank = int(os.environ.get("RANK", "0"))
    model: torch.nn.Module = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(3)])
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        torch.distributed.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
    handler = timed(trace_handler(store, **OPTIONS.get(case, {})))
    is_killed = case == "killed" and rank == 1
    repeat = 2 if case == "repeated" else 1
    recording = profile(
        activities=[ProfilerActivity.CPU],
        schedule=None
        if case in ("raises", "exit")
        else schedule(wait=1, warmup=1, active=2, repeat=repeat),
        on_trace_ready=killed if is_killed else handler,
        record_shapes=True,
    )
    if case == "exit":
        atexit.register(recording.stop)
        recording.start()
        train(model, case)
        return
    with recording:
        for _ in range(STEPS):
            train(model, case)
            recording.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
