"""Programs that the ranks run for each framework, such as DDP, FSDP or pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.judgement.job import US, Job
from tests.judgement.machine import (
    Close,
    Instruction,
    Item,
    Launch,
    Machine,
    Meeting,
    Numbers,
    Open,
    Sync,
    Work,
)
from tests.judgement.noise import Noises

COMPUTE, DATA, TENSOR, EXPERTS, FORWARD, BACKWARD, GATHER, COPIES = 7, 20, 24, 28, 32, 36, 40, 44
COPY = "Memcpy HtoD (Pinned -> Device)"
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
MATRIX, ATTENTION, SMALL = (
    "ampere_bf16_s16816gemm_128x128",
    "flash_fwd_kernel",
    "elementwise_kernel",
)


def simulate(job: Job) -> Machine:
    """Simulate a job and return the machine that ran it."""
    numbers = Numbers()
    machine = Machine([_Program(job, rank, numbers).write() for rank in range(job.ranks)])
    machine.run()
    return machine


class _Program:
    """Builds the host instructions of one rank."""

    def __init__(self, job: Job, rank: int, numbers: Numbers) -> None:
        self.job, self.rank, self.numbers = job, rank, numbers
        self.noise = Noises(job, rank)
        self.tape: list[Instruction] = []
        self.tails: dict[int, Item] = {}
        self.waits: dict[int, list[Item]] = {}
        self.step = 0

    def write(self) -> list[Instruction]:
        job = self.job
        for self.step in range(-job.warm_steps, job.steps):
            self.noise.begin_step(self.step)
            with self.span("user_annotation", f"ProfilerStep#{self.step + 10}"):
                self.load()
                getattr(self, job.framework)()
                for fault in self.faults("checkpoint"):
                    with self.span("user_annotation", "save_checkpoint"):
                        self.tape.append(Work(round(fault)))
            self.tape.append(Work(20 * US))
        self.sync()
        return self.tape

    # Steps of each framework.

    def ddp(self) -> None:
        job = self.job
        for turn in range(job.accumulation):
            for _ in range(job.layers):
                self.layer(1)
            for number in range(job.layers):
                self.layer(2)
                if turn == job.accumulation - 1 and number % 2 == 1:
                    self.collective("dp", DATA, "allreduce", job.data_ns)
        self.optimizer((DATA,))

    def fsdp(self) -> None:
        job = self.job
        gathered = [self.collective("dp", GATHER, "_allgather_base", job.data_ns, after=False)]
        for passes in (1, 2):
            for number in range(job.layers):
                if number < job.layers - 1 or passes == 1:
                    # The next layer's parameters are fetched while this layer is computed.
                    gathered.append(
                        self.collective("dp", GATHER, "_allgather_base", job.data_ns, after=False)
                    )
                self.wait_for(gathered.pop(0))
                self.layer(passes)
                if passes == 2:
                    self.collective("dp", DATA, "_reduce_scatter_base", job.data_ns)
        self.optimizer((DATA,))

    def tensor(self) -> None:
        job = self.job
        for number in range(2 * job.layers):
            self.layer(1 if number < job.layers else 2)
            self.joined("tp", TENSOR, "allreduce", job.tensor_ns)
            if number >= job.layers and number % 2:
                self.collective("dp", DATA, "allreduce", job.data_ns)
        self.optimizer((DATA,))

    def experts(self) -> None:
        job = self.job
        for number in range(2 * job.layers):
            self.layer(1 if number < job.layers else 2)
            self.joined("ep", EXPERTS, "all_to_allv", job.tensor_ns)
            factor = 1.0
            for amount in self.faults("hot expert"):
                factor *= amount
            grid = round(256 * factor)
            self.operator("aten::mm", MATRIX, 0.5 * job.layer_ns * factor, grid)
            self.joined("ep", EXPERTS, "all_to_allv", job.tensor_ns)
            if number >= job.layers and number % 2:
                self.collective("dp", DATA, "allreduce", job.data_ns)
        self.optimizer((DATA,))

    def pipeline(self) -> None:
        job, stage = self.job, self.job.stage(self.rank)
        ahead = min(job.micro_batches, job.stages - stage)
        order = ["F"] * ahead
        order += ["B", "F"] * (job.micro_batches - ahead) + ["B"] * ahead
        for what in order:
            forward = what == "F"
            self.receive(-1 if forward else +1, FORWARD if forward else BACKWARD)
            for _ in range(job.layers):
                self.layer(1 if forward else 2)
                if job.tensor > 1:
                    self.joined("tp", TENSOR, "allreduce", job.tensor_ns)
            self.send(+1 if forward else -1, FORWARD + 1 if forward else BACKWARD + 1)
        if len(job.group("dp", self.rank)) > 1:
            self.collective("dp", DATA, "allreduce", job.data_ns)
        self.optimizer((DATA,))

    def serving(self) -> None:
        job = self.job
        for _ in range(job.accumulation):
            with self.span("user_annotation", "execute_context_0(0)_generation_32(32)"):
                for _ in range(job.layers):
                    self.layer(1)
                    self.joined("tp", COMPUTE, "allreduce", job.tensor_ns)
                self.operator("aten::argmax", SMALL, 20 * US)
                self.sync()

    # Parts of a step.

    def faults(self, kind: str) -> list[float]:
        found = (f for f in self.job.faults if f.kind == kind)
        return [fault.amount for fault in found if fault.hits(self.rank, self.step)]

    def load(self) -> None:
        with self.span("user_annotation", LOADER):
            ns = self.job.loading_ns * self.noise.host() + sum(self.faults("data loading"))
            self.tape.append(Work(round(ns)))

    def layer(self, passes: int) -> None:
        ns = self.job.layer_ns * passes * self.noise.length()
        for amount in self.faults("copies"):
            self.copied(round(amount * ns))
        self.operator("aten::mm", MATRIX, 0.4 * ns, 128)
        for amount in self.faults("more kernels"):
            for _ in range(round(amount)):
                self.operator("aten::mm", MATRIX, 0.4 * self.job.layer_ns, 128, is_extra=True)
        factor = 1.0
        for amount in self.faults("slower kernel"):
            factor *= amount
        self.operator("aten::_flash_attention_forward", ATTENTION, 0.3 * ns * factor, 96)
        self.operator("aten::add", SMALL, 0.05 * ns)
        self.operator("aten::mm", MATRIX, 0.25 * ns, 64)
        for amount in self.faults("host pauses"):
            if self.noise.pauses():
                self.tape.append(Work(round(amount)))

    def operator(
        self, name: str, kernel: str, ns: float, grid: int = 32, *, is_extra: bool = False
    ) -> None:
        factor = 1.0
        for kind in ("slower clocks", "throttling"):
            for amount in self.faults(kind):
                factor *= amount
        factor *= 1.0 if is_extra else self.noise.kernel()
        with self.span("cpu_op", name):
            host = self.job.launch_ns * (1.0 if is_extra else self.noise.host())
            self.tape.append(Work(round(host + sum(self.faults("host-bound")))))
            self.launch(Item(self.rank, kernel, COMPUTE, max(1_000, round(ns * factor)), grid))

    def copied(self, ns: int) -> None:
        """Copy from the host on a stream of its own, and make later computation wait for it."""
        item = Item(self.rank, COPY, COPIES, ns)
        # The buffer of the copy is free once earlier computation has read it.
        if COMPUTE in self.tails:
            self.waits.setdefault(COPIES, []).append(self.tails[COMPUTE])
        with self.span("cpu_op", "aten::copy_"):
            self.tape.append(Work(self.job.launch_ns))
            self.launch(item)
        self.wait_for(item)

    def launch(self, item: Item) -> Item:
        item.awaited = self.waits.pop(item.stream, [])
        self.tails[item.stream] = item
        self.tape.append(Launch(item))
        return item

    def collective(
        self,
        kind: str,
        stream: int,
        name: str,
        ns: int,
        *,
        after: bool = True,
        pair: tuple[int, int] | None = None,
    ) -> Item:
        """Launch the rank's part in a collective; by default, it waits for earlier computation."""
        job = self.job
        group = tuple(sorted(pair)) if pair else job.group(kind, self.rank)
        factor = job.link_factor(group) * (1 + 0.02 * abs(self.noise.link()))
        made = Meeting(kind, name, group, 0, round(ns * factor), 256 * ns)
        if pair:
            made.src, made.dst = pair
        meeting = self.numbers.meeting(self.rank, made)
        words = {"allreduce": "AllReduce_Sum_bf16_RING_LL", "_allgather_base": "AllGather_RING_LL"}
        words["_reduce_scatter_base"] = "ReduceScatter_Sum_bf16_RING_LL"
        word = words.get(name, "SendRecv")
        item = Item(self.rank, f"ncclDevKernel_{word}(ncclDevKernelArgsStorage<4096ul>)", stream, 0)
        item.meeting, item.grid = meeting, 24
        item.duration_ns = round(self.noise.scatter())
        if after and COMPUTE in self.tails and stream != COMPUTE:
            self.waits.setdefault(stream, []).append(self.tails[COMPUTE])
        op = "record_param_comms" if not pair else f"nccl:{name}"
        self.tape.append(Open("cpu_op", op, meeting))
        self.tape.append(Work(round(self.job.launch_ns * self.noise.host())))
        self.launch(item)
        self.tape.append(Close())
        return item

    def joined(self, kind: str, stream: int, name: str, ns: int) -> None:
        """Launch a collective, and make later computation wait for it."""
        if len(self.job.group(kind, self.rank)) > 1:
            self.wait_for(self.collective(kind, stream, name, ns))

    def wait_for(self, item: Item) -> None:
        if item.stream != COMPUTE:
            self.waits.setdefault(COMPUTE, []).append(item)

    def send(self, direction: int, stream: int) -> None:
        other = self.job.neighbor(self.rank, direction)
        if other is not None:
            ns = self.job.pipeline_ns
            self.collective("pp", stream, "send", ns, pair=(self.rank, other))

    def receive(self, direction: int, stream: int) -> None:
        other = self.job.neighbor(self.rank, direction)
        if other is not None:
            ns = self.job.pipeline_ns
            item = self.collective("pp", stream, "recv", ns, pair=(other, self.rank), after=False)
            self.wait_for(item)

    def optimizer(self, streams: tuple[int, ...]) -> None:
        for stream in streams:
            if stream in self.tails:
                self.wait_for(self.tails[stream])
        self.operator("aten::_foreach_add_", SMALL, 0.3 * self.job.layer_ns)
        if self.job.syncs_every_step:
            with self.span("cpu_op", "aten::item"):
                self.sync()

    def sync(self) -> None:
        if COMPUTE in self.tails:
            self.tape.append(Sync(self.tails[COMPUTE]))

    @contextmanager
    def span(self, category: str, name: str) -> Iterator[None]:
        self.tape.append(Open(category, name))
        yield
        self.tape.append(Close())
