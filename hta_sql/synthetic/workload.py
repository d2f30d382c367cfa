"""Define the simulated model: its operators, their kernels and durations.

The data is in ``model.json``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hta_sql.synthetic.spec import JobSpec

SMS = 132
"""Streaming multiprocessors of the simulated GPU."""


@dataclass(frozen=True)
class Kernel:
    """A kernel: its name, typical duration and launch geometry."""

    name: str
    ns: int
    grid: list[int]
    block: list[int]
    registers: int = 32
    shared_memory: int = 0
    occupancy: int = 100
    matrix: bool = False
    """Whether it is a matrix kernel of cuBLAS, which launches through the driver."""

    @cached_property
    def args(self) -> str:
        """Arguments that depend only on the kernel, as JSON text."""
        blocks = self.grid[0] * self.grid[1] * self.grid[2]
        warps = blocks * (-(-self.block[0] * self.block[1] * self.block[2] // 32))
        return (
            f'"registers per thread": {self.registers},      '
            f'"shared memory": {self.shared_memory},      '
            f'"blocks per SM": {_sixths(blocks)},      "warps per SM": {_sixths(warps)},      '
            f'"grid": {self.grid},      "block": {self.block},      '
            f'"est. achieved occupancy %": {self.occupancy}'
        )


def _sixths(count: int) -> str:
    """Return `count` per multiprocessor with six decimals, without float arithmetic."""
    millionths = (count * 1_000_000 + SMS // 2) // SMS
    return f"{millionths // 1_000_000}.{millionths % 1_000_000:06d}"


@dataclass(frozen=True)
class Operator:
    """A forward operator (outermost name first) and its autograd node."""

    module: str
    builtin: str
    forward: list[str]
    forward_kernel: Kernel
    node: str
    backward: tuple[tuple[str, Kernel], ...]
    shape: list[int]

    @cached_property
    def args(self) -> str:
        """Input shapes in the format of `record_shapes`, as JSON text."""
        strides = [self.shape[-1], 1]
        return (
            '"Concrete Inputs": [""], "Input type": ["c10::BFloat16"], '
            f'"Input Strides": [{strides}], "Input Dims": [{self.shape}], '
        )

    @property
    def bytes(self) -> int:
        """Size of the result, which stays allocated until the backward pass."""
        return 2 * self.shape[0] * self.shape[1]


def _operator(fields: dict[str, Any]) -> Operator:
    backward = tuple((name, Kernel(**kernel)) for name, kernel in fields["backward"])
    return Operator(
        **{**fields, "forward_kernel": Kernel(**fields["forward_kernel"]), "backward": backward}
    )


_MODEL = json.loads((Path(__file__).parent / "model.json").read_text(encoding="utf-8"))

OPERATORS = [_operator(fields) for fields in _MODEL["operators"]]
"""A block runs the first `ops_per_layer` of these operators, repeating them if it needs more."""

FOREACH = [Kernel(**fields) for fields in _MODEL["optimizer"]]
"""Kernels of one optimizer pass over one block."""

LOSS = Kernel(**_MODEL["loss"])

ALL_REDUCE = {names: Kernel(**fields) for names, fields in _MODEL["all_reduce"].items()}
"""Kernel of an all-reduce for each naming scheme of communication kernels."""

BATCH_BYTES = 16_777_216
"""Bytes that each step copies from the host; the copy engine moves 25 bytes per nanosecond."""

_BYTES_PER_NS = 150
_ELEMENTS_PER_OP = 2_000_000


def all_reduce_elements(spec: JobSpec, layer: int) -> int:
    """Return the number of gradient elements of a block, which differs slightly between blocks."""
    return _ELEMENTS_PER_OP * min(spec.ops_per_layer, 64) + 4096 * layer


def element_bytes(spec: JobSpec) -> int:
    """Return the size of a gradient element [bytes]: bf16 in modern jobs, fp32 in old jobs."""
    return 2 if spec.nccl_names == "modern" else 4


def all_reduce_ns(spec: JobSpec, elements: int) -> int:
    """Return the time of a ring all-reduce of `elements` after the last rank's arrival [ns]."""
    moved = 2 * (spec.ranks - 1) * elements * element_bytes(spec) // spec.ranks
    return 12_000 + moved // _BYTES_PER_NS
