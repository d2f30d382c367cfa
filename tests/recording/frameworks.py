"""Training jobs of frameworks that record into a store, as docs/record.md shows; run by ``with_torch.py``.

``python frameworks.py STORE FRAMEWORK``, or the same under torchrun. Lightning starts its ranks.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import torch
from torch.profiler import profile, schedule

from hta_sql.torch import trace_handler

WIDTH, BATCH, STEPS = 64, 4, 8


def short_schedule() -> Any:
    """Return a schedule with one recording."""
    return schedule(wait=1, warmup=1, active=3, repeat=1)


def accelerate(store: str) -> None:
    """Train with Accelerate."""
    from accelerate import Accelerator  # noqa: PLC0415 - each job has its own framework
    from accelerate.utils import ProfileKwargs  # noqa: PLC0415

    profiling = ProfileKwargs(
        schedule_option={"wait": 1, "warmup": 1, "active": 3, "repeat": 1},
        on_trace_ready=trace_handler(store),
    )
    accelerator = Accelerator(cpu=True, kwargs_handlers=[profiling])
    model = torch.nn.Linear(WIDTH, WIDTH)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.01))
    with accelerator.profile() as profiler:
        for _ in range(STEPS):
            accelerator.backward(model(torch.randn(BATCH, WIDTH)).sum())
            optimizer.step()
            profiler.step()


def lightning(store: str) -> None:
    """Train with Lightning, in two processes."""
    from lightning.pytorch import LightningModule, Trainer  # noqa: PLC0415
    from lightning.pytorch.profilers import PyTorchProfiler  # noqa: PLC0415

    class Model(LightningModule):  # type: ignore[misc]  # has no types
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(WIDTH, WIDTH)

        def training_step(self, batch: Any, _: int) -> Any:
            return self.layer(batch[0]).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.01)

    data = torch.utils.data.TensorDataset(torch.randn(2 * STEPS * BATCH, WIDTH))
    profiler = PyTorchProfiler(on_trace_ready=trace_handler(store), schedule=short_schedule())
    trainer = Trainer(
        profiler=profiler,
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=BATCH))


def transformers(store: str) -> None:
    """Train with the Trainer of transformers."""
    from transformers import Trainer, TrainerCallback, TrainingArguments  # noqa: PLC0415

    class Recording(TrainerCallback):  # type: ignore[misc]  # has no types
        def __init__(self) -> None:
            self.profile = profile(schedule=short_schedule(), on_trace_ready=trace_handler(store))

        def on_train_begin(self, *_: Any, **__: Any) -> None:
            self.profile.start()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self.profile.step()

        def on_train_end(self, *_: Any, **__: Any) -> None:
            self.profile.stop()

    class Model(torch.nn.Module):  # type: ignore[misc]  # has no types
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Any, labels: Any = None) -> dict[str, Any]:
            del labels
            y = self.layer(x)
            return {"loss": y.sum(), "logits": y}

    rows = [{"x": torch.randn(WIDTH), "labels": torch.tensor(0)} for _ in range(2 * STEPS * BATCH)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            use_cpu=True,
            max_steps=STEPS,
            per_device_train_batch_size=BATCH,
            report_to=[],
            save_strategy="no",
        )
        Trainer(Model(), arguments, train_dataset=rows, callbacks=[Recording()]).train()


if __name__ == "__main__":
    {job.__name__: job for job in (accelerate, lightning, transformers)}[sys.argv[2]](sys.argv[1])
