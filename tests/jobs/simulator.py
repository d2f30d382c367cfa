"""Simulation of a planted job: the events of each rank in true time, and the waits of ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from tests.jobs.spec import US, PlantedJob

COMPUTE, TP_STREAM, DP_STREAM, PP_STREAM, EP_STREAM, FSDP_STREAM = 7, 20, 24, 28, 32, 36

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
MATRIX = "ampere_sgemm_128x64_tn"
ATTENTION = "flash_fwd_kernel"
SMALL = "vectorized_elementwise_kernel"

ELEMENTS = 1 << 20
"""Number of elements in a reduction."""

TRANSFERS = {"tp": 40 * US, "dp": 150 * US, "pp": 30 * US, "ep": 60 * US, "fsdp": 120 * US}

Number = TypeVar("Number", int, float)


@dataclass
class Collective:
    """One rank's part in a collective or in a transfer between two ranks."""

    kind: str
    group: tuple[int, ...]
    number: int
    """Index of the collective in its group."""
    rank: int
    start: int
    end: int = 0
    wait: int = 0
    transfer: int = 0
    is_last: bool = False
    name: str = ""
    elements: int = ELEMENTS
    elem_type: str = "Float"
    event: int | None = None
    """Index of the event in the trace, or None if the capture lost the event."""

    @property
    def key(self) -> tuple[str, tuple[int, ...], int]:
        """Return the key that all parts of a collective have in common."""
        return self.kind, self.group, self.number


@dataclass
class Event:
    """An event of a rank in true time."""

    category: str
    name: str
    start: int
    end: int
    stream: int | None = None
    correlation: int = 0
    external: int = 0
    grid: int = 64
    collective: Collective | None = None


@dataclass
class Rank:
    """The events and collectives of one rank."""

    rank: int
    events: list[Event] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)


Meeting = Generator[Collective, int, None]
"""Generator that yields each collective that a rank enters, and is sent its end time."""


def simulate(job: PlantedJob) -> list[Rank]:
    """Simulate all ranks of a job."""
    runners = [_Runner(job, rank) for rank in range(job.ranks)]
    programs = [runner.program() for runner in runners]
    link = Random(job.seed * 7919 + 17)
    waiting: dict[tuple[str, tuple[int, ...], int], list[Collective]] = defaultdict(list)
    ready: list[tuple[int, int | None]] = [(rank, None) for rank in range(job.ranks)]
    while ready:
        rank, told = ready.pop(0)
        try:
            came = programs[rank].send(told)  # type: ignore[arg-type]
        except StopIteration:
            continue
        together = waiting[came.key]
        together.append(came)
        if len(together) == len(came.group):
            _meet(job, together, link)
            ready += [(part.rank, part.end) for part in together]
    # A collective that some of its ranks never enter is never completed.
    for program in programs:
        program.close()
    return [runner.did for runner in runners]


def _meet(job: PlantedJob, parts: list[Collective], link: Random) -> None:
    """Complete a collective that all of its ranks have entered.

    The transfer starts when the last rank enters, and all ranks leave at about the same time.
    """
    last = max(parts, key=lambda part: (part.start, -part.rank))
    transfer = TRANSFERS[last.kind] * (1 + abs(link.gauss(0, 0.02)))
    if last.kind == "dp":
        transfer *= job.slow_link.get(min(last.group), 1.0)
    if last.kind == "pp":
        transfer *= job.slow_pair.get((last.group[0], last.group[1]), 1.0)
    hosts = {job.host_number(rank) for rank in last.group}
    if len(hosts) > 1:
        transfer *= max(job.slow_host.get(host, 1.0) for host in hosts)
    end = last.start + round(transfer)
    for part in parts:
        part.is_last = part is last
        part.wait = last.start - part.start
        part.transfer = end - last.start
        part.end = end + round(link.expovariate(1) * job.scatter_ns)


class _Runner:
    """The host and the device of one rank during a simulation."""

    def __init__(self, job: PlantedJob, rank: int) -> None:
        self.job, self.rank = job, rank
        self.did = Rank(rank)
        self.now = 1000 * US
        self.free: dict[int, int] = defaultdict(int)
        self.random = Random(job.seed * 1_000_003 + rank)
        self.numbers: dict[tuple[str, tuple[int, ...]], int] = defaultdict(int)
        self.ids = 0
        self.step = 0
        self.sequence = 1.0
        self.gathered = 0

    def program(self) -> Meeting:
        job = self.job
        for self.step in range(job.steps):
            with self.span("user_annotation", f"ProfilerStep#{self.step}"):
                with self.span("user_annotation", LOADER):
                    self.now += 60 * US + self.planted(job.loading, 0)
                if self.planted(job.saving, 0):
                    with self.span("user_annotation", "save_checkpoint"):
                        self.now += self.planted(job.saving, 0)
                self.draw_step()
                if job.extra_collective.get(self.rank) == self.step:
                    yield from self.reduce(elements=1)
                for _ in range(job.micro_batches):
                    yield from self.receive(-1)
                    for _ in range(job.layers):
                        yield from self.gather()
                        yield from self.layer(1)
                    yield from self.send(+1)
                for left in reversed(range(job.micro_batches)):
                    yield from self.receive(+1)
                    for _ in range(job.layers):
                        yield from self.layer(2)
                        if left == 0:
                            yield from self.gradients()
                    yield from self.send(-1)
                self.end_step()
            self.now += 20 * US

    def end_step(self) -> None:
        """Run the optimizer, and wait for the device if the job synchronizes after each step."""
        if self.job.overlap:
            self.free[COMPUTE] = max(self.free[COMPUTE], self.free[DP_STREAM])
        self.operator("aten::_foreach_add_", [(SMALL, 50 * US, 32)])
        if self.job.syncs:
            with self.span("cpu_op", "aten::item"):
                self.wait_for_device()

    def planted(self, of: Mapping[int, Number], usual: Number) -> Number:
        """Return the planted value for this rank and step, or else the usual value."""
        applies = not self.job.late_steps or self.step in self.job.late_steps
        return of.get(self.rank, usual) if applies else usual

    def draw_step(self) -> None:
        """Draw the random values that apply to this step."""
        if self.job.sequence_spread:
            self.sequence = max(0.2, self.random.gauss(1, self.job.sequence_spread))
        if self.job.pauses and self.random.random() < self.job.pauses:
            self.now += round(self.random.expovariate(1 / (2000 * US)))

    def gather(self) -> Meeting:
        """Wait for the parameters of this layer, and start gathering those of the next layer."""
        if not self.job.gathers:
            return
        self.free[COMPUTE] = max(self.free[COMPUTE], self.gathered)
        group = self.job.dp_group(self.rank)
        part = Collective("fsdp", group, 0, self.rank, 0)
        self.gathered = yield from self.collective(
            part, FSDP_STREAM, "_allgather_base", joins=False
        )

    def stream_waits(self) -> None:
        """Record a call by which one stream waits for another, if the job records such calls."""
        if self.job.waits_in_calls:
            with self.span("cuda_runtime", "cudaStreamWaitEvent"):
                pass

    def wait_for_device(self) -> None:
        if not self.job.waits_in_calls:
            self.now = max(self.now + 5 * US, self.free[COMPUTE] + 8 * US)
            return
        with self.span("cuda_runtime", "cudaStreamSynchronize"):
            self.now = max(self.now + 5 * US, self.free[COMPUTE] + 8 * US)

    def layer(self, passes: int) -> Meeting:
        job, rank = self.job, self.rank
        if rank in job.pausing and self.random.random() < job.pausing[rank]:
            self.now += round(self.random.uniform(1000, 2000) * US)
        bigger = self.planted(job.bigger_batch, 1.0)
        matrix = (MATRIX, round(100 * US * bigger), round(64 * bigger))
        for _ in range(passes):
            for _ in range(1 + self.planted(job.more_kernels, 0)):
                self.operator("aten::mm", [matrix])
            attention = 80 * US * self.planted(job.slower_kernel, 1.0)
            self.operator("aten::scaled_dot_product_attention", [(ATTENTION, round(attention), 48)])
            self.operator("aten::add", [(SMALL, 20 * US, 32)])
        if job.tp > 1:
            part = Collective("tp", job.tp_group(rank), 0, rank, 0)
            yield from self.collective(part, TP_STREAM, "allreduce")
        if job.experts > 1:
            part = Collective("ep", job.ep_group(rank), 0, rank, 0)
            yield from self.collective(part, EP_STREAM, "all_to_allv")
            hot = self.planted(job.hot_expert, 1.0)
            self.operator("aten::mm", [(MATRIX, round(matrix[1] * hot), round(matrix[2] * hot))])
            part = Collective("ep", job.ep_group(rank), 0, rank, 0)
            yield from self.collective(part, EP_STREAM, "all_to_allv")

    def gradients(self) -> Meeting:
        if len(self.job.dp_group(self.rank)) > 1:
            is_other = self.job.other_type.get(self.rank) == self.step
            yield from self.reduce(elem_type="BFloat16" if is_other else "Float")

    def reduce(self, elements: int = ELEMENTS, elem_type: str = "Float") -> Meeting:
        group, joins = self.job.dp_group(self.rank), not self.job.overlap
        part = Collective("dp", group, 0, self.rank, 0, elements=elements, elem_type=elem_type)
        yield from self.collective(part, DP_STREAM, "allreduce", joins=joins)

    def send(self, to: int) -> Meeting:
        yield from self.pass_on(to, "send")

    def receive(self, of: int) -> Meeting:
        yield from self.pass_on(of, "recv")

    def pass_on(self, direction: int, what: str) -> Meeting:
        """Send to, or receive from, the next stage (+1) or the previous stage (-1)."""
        job = self.job
        stage = job.stage_of(self.rank) + direction
        if not 0 <= stage < job.stages:
            return
        other = self.rank + direction * job.ranks // job.stages
        pair = (self.rank, other) if what == "send" else (other, self.rank)
        yield from self.collective(Collective("pp", pair, 0, self.rank, 0), PP_STREAM, what)

    def length(self, ns: int) -> int:
        job, rank = self.job, self.rank
        factor = self.planted(job.slower_clock, 1.0) * self.sequence
        if 2 * self.step >= job.steps:
            factor *= job.throttled.get(rank, 1.0)
        return max(1000, round(ns * factor * (1 + self.random.gauss(0, job.noise))))

    def operator(self, name: str, kernels: list[tuple[str, int, int]]) -> None:
        with self.span("cpu_op", name) as external:
            self.now += 3 * US + self.planted(self.job.host_bound, 0)
            for kernel, ns, grid in kernels:
                correlation, launched = self.launch(external)
                start = max(launched, self.free[COMPUTE])
                end = start + self.length(ns)
                self.free[COMPUTE] = end + 1 * US
                self.add(Event("kernel", kernel, start, end, COMPUTE, correlation, external, grid))

    def collective(
        self, part: Collective, stream: int, name: str, *, joins: bool = True
    ) -> Generator[Collective, int, int]:
        part.name = name
        part.number = self.numbers[part.kind, part.group]
        self.numbers[part.kind, part.group] += 1
        with self.span("cpu_op", "record_param_comms", part) as external:
            self.now += 4 * US
            self.stream_waits()
            correlation, launched = self.launch(external)
        if joins:
            self.stream_waits()
        # Only FSDP need not wait for the compute stream: its parameters already exist.
        queued = 0 if part.kind == "fsdp" else self.free[COMPUTE] + 2 * US
        part.start = max(launched, self.free[stream], queued)
        end = yield part
        self.free[stream] = end + 1 * US
        if joins:
            self.free[COMPUTE] = end + 2 * US
        words = {"allreduce": "AllReduce_Sum_f32_RING_LL", "_allgather_base": "AllGather_RING_LL"}
        word = words.get(name, "SendRecv")
        kernel = f"ncclDevKernel_{word}(ncclDevKernelArgsStorage<4096ul>)"
        self.add(Event("kernel", kernel, part.start, end, stream, correlation, external, 24, part))
        self.did.collectives.append(part)
        return end

    def launch(self, external: int) -> tuple[int, int]:
        self.ids += 1
        start = self.now
        self.now += 2 * US
        self.add(
            Event("cuda_runtime", "cudaLaunchKernel", start, self.now, None, self.ids, external)
        )
        return self.ids, self.now + 1 * US

    @contextmanager
    def span(self, category: str, name: str, part: Collective | None = None) -> Iterator[int]:
        self.ids += 1
        event = Event(category, name, self.now, 0, external=self.ids, collective=part)
        self.add(event)
        self.now += 1 * US
        try:
            yield event.external
        finally:
            self.now += 1 * US
            event.end = self.now

    def add(self, event: Event) -> None:
        self.did.events.append(event)
