"""Simulated serving engines whose correct analysis results are known.

They cover continuous batching, prefill chunks, decode graphs and a slow scheduler. A job is a list
of iterations, each with its requests and its device activity. Times are whole nanoseconds. The
clocks of device and host agree, and an engine is synchronous: it schedules an iteration once the
device has finished the previous one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

Event = dict[str, Any]

LAUNCH_NS, CALL_NS = 2_000, 1_000
"""Time from a launch to the start of its kernel, and duration of the launch call."""

ATTENTION, GEMM, NORM = "flash_fwd_splitkv_kernel", "sm90_xmma_gemm_bf16", "rms_norm_kernel"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
DISPATCH, COMBINE = "deep_ep::intranode::dispatch<8>", "deep_ep::intranode::combine<8>"
CATEGORIES = {
    ATTENTION: "attention",
    GEMM: "gemm",
    NORM: "norm",
    **dict.fromkeys((ALL_REDUCE, DISPATCH, COMBINE), "communication"),
}


HEADS, KV_HEADS, HEAD_SIZE = 16, 4, 64
"""Shape of a recorded attention operator, whose cache holds 8-bit numbers."""


@dataclass(frozen=True)
class Kernel:
    """A kernel, and how long the device is idle before it."""

    name: str
    dur_ns: int
    idle_ns: int = 0


@dataclass(frozen=True)
class Iteration:
    """One batch of an engine.

    Attributes:
        kernels: Kernels on the device, in order.
        contexts: New tokens and context length of each request in prefill.
        generations: New tokens and context length of each request that decodes.
        is_graph: Whether a single graph replay launches all kernels.
        padded: Request count that the graph was captured for; None if not recorded.
        schedule_ns: Time from the end of the previous iteration to the start of the first kernel.
    """

    kernels: tuple[Kernel, ...]
    contexts: tuple[tuple[int, int], ...] = ()
    generations: tuple[tuple[int, int], ...] = ()
    is_graph: bool = False
    padded: int | None = None
    schedule_ns: int = 20_000

    @property
    def phase(self) -> str:
        """Return the phase, under the name that the analyses use."""
        if self.contexts:
            return "mixed" if self.generations else "prefill"
        return "speculative" if any(new > 1 for new, _ in self.generations) else "decode"

    @property
    def name(self) -> str:
        """Return the annotation: in ATOM's format if ``padded`` is known, else in vLLM's."""
        if self.padded is not None:
            count = len(self.generations)
            return f"decode[bs={count}/{self.padded} tok={count} d={count}]"
        groups = [
            f"{word}_{len(requests)}(sq{sum(new for new, _ in requests)}sk{sum(known for _, known in requests)}"
            f"sqsq{sum(new * new for new, _ in requests)}sqsk{sum(new * known for new, known in requests)})"
            for word, requests in (("context", self.contexts), ("generation", self.generations))
        ]
        return f"execute_{self.tokens}_{groups[0]}_{groups[1]}"

    @property
    def tokens(self) -> int:
        """Return the total number of new tokens in all requests."""
        return sum(new for new, _ in (*self.contexts, *self.generations))

    @property
    def busy_ns(self) -> int:
        """Return the total duration of the iteration's kernels, which never overlap."""
        return sum(kernel.dur_ns for kernel in self.kernels)

    @property
    def device_ns(self) -> int:
        """Return the time from the start of the first kernel to the end of the last kernel."""
        return self.busy_ns + sum(kernel.idle_ns for kernel in self.kernels[1:])


def layers(count: int, scale_ns: int, *, idle_ns: int = 0) -> tuple[Kernel, ...]:
    """Return the kernels of a model, three per layer."""
    return tuple(
        Kernel(name, share * scale_ns, idle_ns)
        for _ in range(count)
        for name, share in ((NORM, 1), (GEMM, 6), (ATTENTION, 3))
    )


def decode(requests: int = 8, context: int = 500, **options: Any) -> Iteration:
    """Return an iteration in which each request generates one token."""
    kernels = options.pop("kernels", layers(4, 10_000))
    return Iteration(kernels, generations=((1, context),) * requests, **options)


@dataclass(frozen=True)
class Request:
    """A request: remaining prompt tokens, context length so far, and tokens left to generate."""

    prompt: int
    context: int
    output: int


def continuous_batching(
    seed: int, count: int, *, chunk: int = 512, most: int = 8
) -> list[Iteration]:
    """Simulate vLLM's scheduler: requests arrive and finish, and prompt chunks run next to decodes.

    Args:
        seed: Random seed.
        count: Number of iterations.
        chunk: Maximum number of new tokens in an iteration.
        most: Maximum number of concurrent requests.
    """
    drawn = random.Random(seed)
    running: list[Request] = []
    iterations: list[Iteration] = []
    while len(iterations) < count:
        if len(running) < most and (not running or drawn.random() < 0.1):
            running.append(Request(drawn.randint(1, 1_500), 0, drawn.randint(1, 40)))
        contexts: list[tuple[int, int]] = []
        generations: list[tuple[int, int]] = []
        budget, after = chunk, []
        for request in running:
            new = 0 if request.prompt == 0 else min(request.prompt, max(0, budget - most))
            if request.prompt == 0:
                generations.append((1, request.context + 1))
                after.append(Request(0, request.context + 1, request.output - 1))
            elif new:
                contexts.append((new, request.context + new))
                after.append(Request(request.prompt - new, request.context + new, request.output))
            else:
                after.append(request)
            budget -= new if request.prompt else 1
        running = [request for request in after if request.prompt or request.output]
        is_graph = not contexts
        scale = 2_000 + 17 * sum(new for new, _ in contexts) + drawn.randint(0, 400)
        kernels = layers(3, scale, idle_ns=0 if is_graph else drawn.randint(0, 3_000))
        iterations.append(
            Iteration(
                kernels,
                tuple(contexts),
                tuple(generations),
                is_graph=is_graph,
                schedule_ns=drawn.randint(10_000, 90_000),
            )
        )
    return iterations


def slowed(iterations: list[Iteration], schedule_ns: int) -> list[Iteration]:
    """Return the same iterations with a slower scheduler."""
    return [replace(one, schedule_ns=schedule_ns) for one in iterations]


def trace(
    iterations: list[Iteration], rank: int = 0, world_size: int = 1, *, has_shapes: bool = False
) -> dict[str, Any]:
    """Return the trace of a rank.

    With ``has_shapes``, each attention kernel that is launched separately has an operator.
    """
    events: list[Event] = []
    device_end, correlation = 0, 0
    for one in iterations:
        first = device_end + one.schedule_ns
        begin = first - LAUNCH_NS - 1_000
        at = device_end = first
        for position, kernel in enumerate(one.kernels):
            at += kernel.idle_ns if position else 0
            if not one.is_graph or not position:
                correlation += 1
                call = "cudaGraphLaunch" if one.is_graph else "cudaLaunchKernel"
                launched = at - LAUNCH_NS
                if has_shapes and kernel.name == ATTENTION:
                    events.append(_attention(one, launched))
                events.append(
                    _host("cuda_runtime", call, launched, CALL_NS, correlation=correlation)
                )
            args = {"correlation": correlation, "device": rank, "stream": 7}
            of = {
                "ph": "X",
                "cat": "kernel",
                "pid": rank,
                "tid": 7,
                "name": kernel.name,
                "args": args,
            }
            events.append(of | {"ts": at / 1_000, "dur": kernel.dur_ns / 1_000})
            at += kernel.dur_ns
            device_end = at
        events.append(_host("user_annotation", one.name, begin, launched + CALL_NS + 500 - begin))
    device = {"id": rank, "name": "NVIDIA H100 80GB HBM3"}
    facts = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world_size}}
    return {
        "schemaVersion": 1,
        **(facts if world_size > 1 else {}),
        **({"deviceProperties": [device]} if has_shapes else {}),
        "traceEvents": events,
    }


def capture(graphs: dict[int, tuple[Kernel, ...]]) -> dict[str, Any]:
    """Return a trace in which an engine captures one graph per token count, the largest first."""
    events: list[Event] = []
    at = 1_000_000
    for tokens in sorted(graphs, reverse=True):
        begin = at
        events.append(_host("cuda_runtime", "cudaStreamBeginCapture", at + 10, CALL_NS))
        for kernel in graphs[tokens]:
            at += 2 * LAUNCH_NS
            launch = {"kernel": kernel.name, "correlation": at}
            events.append(_host("cuda_runtime", "cudaLaunchKernel", at, CALL_NS, **launch))
        at += 2 * LAUNCH_NS
        events.append(_host("cuda_runtime", "cudaStreamEndCapture", at, CALL_NS))
        label = f"capture_{tokens}_FULL"
        at += 2 * LAUNCH_NS
        events.append(_host("user_annotation", label, begin, at - begin - 100))
    return {"schemaVersion": 1, "traceEvents": events}


def _attention(one: Iteration, launched: int) -> Event:
    """Return the operator that launches an attention kernel, with its input shapes."""
    query, page = [one.tokens, HEADS, HEAD_SIZE], [1_000, 16, KV_HEADS, HEAD_SIZE]
    types = ["c10::BFloat16", "c10::Float8_e4m3fn", "c10::Float8_e4m3fn"]
    inputs = {"Input Dims": [query, page, page], "Input type": types}
    return _host("cpu_op", "_vllm_fa3_C::fwd", launched - 100, CALL_NS + 200, **inputs)


def _host(cat: str, name: str, ts: int, dur: int, **args: object) -> Event:
    of = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "args": args}
    return of | {"ts": ts / 1_000, "dur": dur / 1_000}


@dataclass
class PhaseTruth:
    """Expected values for the iterations of one phase."""

    times_ns: list[int] = field(default_factory=list)
    gaps_ns: list[int] = field(default_factory=list)
    device_ns: int = 0
    busy_ns: int = 0
    tokens: int = 0
    outputs: int = 0
    prompts: int = 0
    requests: int = 0
    context: int = 0
    graphs: int = 0
    kinds_ns: Counter[str] = field(default_factory=Counter)

    def quantile(self, share: Fraction) -> int:
        """Return an interpolated quantile of the iteration times; halves round up."""
        ordered = sorted(self.times_ns)
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        exact = ordered[below] + (place - below) * (ordered[above] - ordered[below])
        return int(exact + Fraction(1, 2))


def truth_of(iterations: list[Iteration]) -> dict[str, PhaseTruth]:
    """Return the expected values by phase."""
    phases: dict[str, PhaseTruth] = {}
    for number, one in enumerate(iterations):
        phase = phases.setdefault(one.phase, PhaseTruth())
        gap = one.schedule_ns if number else 0
        phase.times_ns.append(one.device_ns + gap)
        phase.gaps_ns += [gap] if number else []
        phase.device_ns += one.device_ns
        phase.busy_ns += one.busy_ns
        phase.tokens += one.tokens
        phase.outputs += len(one.generations)
        phase.prompts += len(one.contexts)
        phase.requests += len(one.contexts) + len(one.generations)
        phase.context += sum(known for _, known in (*one.contexts, *one.generations))
        phase.graphs += one.is_graph
        for kernel in one.kernels:
            phase.kinds_ns[CATEGORIES[kernel.name]] += kernel.dur_ns
    return phases


def pairs_of(one: Iteration) -> int:
    """Count the query-key pairs of causal attention by looping over the queries."""
    return sum(_pairs(new, known) for new, known in (*one.contexts, *one.generations))


def attention_work(one: Iteration) -> tuple[int, int]:
    """Return the operations and bytes of the attention in one iteration.

    The operations are two matrix products. The bytes are one read of the cache, plus query and
    output.
    """
    context = sum(known for _, known in (*one.contexts, *one.generations))
    bytes_of_cache = 2 * KV_HEADS * HEAD_SIZE * context
    return (
        4 * pairs_of(one) * HEADS * HEAD_SIZE,
        bytes_of_cache + 2 * 2 * HEADS * HEAD_SIZE * one.tokens,
    )


def _pairs(new: int, known: int) -> int:
    """Count query-key pairs of one request.

    The last new token attends to all tokens, and each earlier token to one fewer.
    """
    return sum(known - before for before in range(new))


def ranks_of(
    parts: list[list[Iteration]], *, has_shapes: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rank and the trace of each list of iterations."""
    for rank, iterations in enumerate(parts):
        yield rank, trace(iterations, rank, len(parts), has_shapes=has_shapes)
