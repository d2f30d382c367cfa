"""Simulate the operations of a rank's CPU threads in one training step."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass

from hta_sql.synthetic.host import Host
from hta_sql.synthetic.records import COMPUTE_STREAM, COPY_STREAM, FIRST_COMM_STREAM, Collective
from hta_sql.synthetic.spec import JobSpec
from hta_sql.synthetic.workload import (
    ALL_REDUCE,
    BATCH_BYTES,
    FOREACH,
    LOSS,
    OPERATORS,
    Operator,
    all_reduce_elements,
    all_reduce_ns,
    element_bytes,
)


@dataclass(frozen=True, slots=True)
class _Saved:
    """State of a forward operator that the backward pass needs."""

    operator: Operator
    sequence: int
    flow: int
    address: int


def training_step(host: Host, number: int) -> Generator[None, int, None]:
    """Run one step.

    Yields once, after all GPU work of the step is queued. The caller then sends the time at which
    the compute stream has finished that work. Nothing before the yield depends on GPU timing.
    """
    host.trace.ts = host.now
    with host.annotation(f"ProfilerStep#{number}") as step:
        with host.python("train.py(88): train_step"):
            _load_batch(host, number)
            _zero_grad(host)
            saved = _forward(host)
            _backward(host, number, saved)
            _optimizer_step(host)
            # The host is ahead: this copy overlaps the collectives of the backward pass.
            _copy_batch(host, BATCH_BYTES // 2)
            yield from _read_loss(host)
        with host.annotation("## log ##"):
            host.tick(55_000)
        if delay := host.spec.step_delays.get(number):
            with host.annotation("## checkpoint ##"):
                host.now += delay
    host.trace.ts, host.trace.dur = step.ts, step.dur
    host.tick(35_000)


def _load_batch(host: Host, number: int) -> None:
    with (
        host.python("torch/utils/data/dataloader.py(733): __next__"),
        host.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
    ):
        host.tick(240_000)
        if not host.spec.late_steps or number in host.spec.late_steps:
            host.now += host.spec.stragglers.get(host.rank, 0)
    _copy_batch(host, BATCH_BYTES // 8)
    host.wait(COMPUTE_STREAM, COPY_STREAM)


def _copy_batch(host: Host, size: int) -> None:
    with host.operator("aten::to"), host.operator("aten::_to_copy"), host.operator("aten::copy_"):
        host.copy("Memcpy HtoD (Pinned -> Device)", size, 25, COPY_STREAM)


def _zero_grad(host: Host) -> None:
    with host.annotation("Optimizer.zero_grad#AdamW.zero_grad"):
        for layer in range(host.spec.layers):
            with host.operator("aten::zero_"):
                host.memset(all_reduce_elements(host.spec, layer) * element_bytes(host.spec))


def _forward(host: Host) -> list[list[_Saved]]:
    spec = host.spec
    layers = []
    with (
        host.annotation("## forward ##"),
        host.python("torch/nn/modules/module.py(1782): _call_impl"),
        host.python("nn.Module: GPT_0", "GPT_0"),
    ):
        for layer in range(spec.layers):
            name = f"Block_{layer}"
            with host.python(f"nn.Module: {name}", name), host.python("model.py(71): forward"):
                layers.append(
                    [_forward_operator(host, layer, i) for i in range(spec.ops_per_layer)]
                )
            if layer == 0:
                # The next batch is copied during the computation of this one: copies overlap
                # kernels.
                _copy_batch(host, BATCH_BYTES // 2)
    with host.operator("aten::cross_entropy_loss"), host.operator("aten::nll_loss_forward"):
        host.kernel(LOSS)
    return layers


def _forward_operator(host: Host, layer: int, index: int) -> _Saved:
    operator = OPERATORS[index % len(OPERATORS)]
    host.sequence += 1
    host.flow += 1
    module = f"{operator.module}_{layer}_{index}"
    builtin = f"<built-in method {operator.builtin} of type object at 0x7f864accea40>"
    numbers = f'"Sequence number": {host.sequence}, "Fwd thread id": 0, '
    with (
        host.python(f"nn.Module: {operator.module}_{index}", module),
        host.python(builtin),
        host.operator(operator.forward[0], numbers + operator.args),
        ExitStack() as inner,
    ):
        # Python between operators is slow: small kernels wait for the host, large ones cover the
        # delay.
        host.tick(30_000)
        host.arrow("s", host.flow)
        for name in operator.forward[1:]:
            inner.enter_context(host.operator(name, operator.args))
        address = host.allocate(operator.bytes)
        host.kernel(operator.forward_kernel)
    return _Saved(operator, host.sequence, host.flow, address)


def _backward(host: Host, number: int, layers: list[list[_Saved]]) -> None:
    with (
        host.annotation("## backward ##"),
        host.python("torch/autograd/__init__.py(255): backward"),
        host.on_autograd_thread(),
    ):
        for index, layer in enumerate(reversed(range(host.spec.layers))):
            for saved in reversed(layers[layer]):
                _backward_node(host, saved)
            name = "torch::autograd::AccumulateGrad"
            with host.operator(f"autograd::engine::evaluate_function: {name}"), host.operator(name):
                host.tick(3_000)
            if host.spec.ranks > 1:
                _all_reduce(host, number, index, layer)


def _backward_node(host: Host, saved: _Saved) -> None:
    node = saved.operator.node
    numbers = f'"Sequence number": {saved.sequence}, "Fwd thread id": 1, '
    with (
        host.operator(f"autograd::engine::evaluate_function: {node}", numbers),
        host.operator(node, numbers + saved.operator.args),
    ):
        host.arrow("f", saved.flow)
        for name, kernel in saved.operator.backward:
            with host.operator(name, saved.operator.args):
                host.kernel(kernel)
        host.release(saved.address, saved.operator.bytes)


def _all_reduce(host: Host, number: int, index: int, layer: int) -> None:
    spec = host.spec
    group = layer % spec.comm_streams
    host.group_seq[group] += 1
    elements = all_reduce_elements(spec, layer)
    collective = Collective(
        number, index, host.group_seq[group], group, elements, all_reduce_ns(spec, elements)
    )
    host_args, gpu_args = _metadata(spec, collective)
    stream = FIRST_COMM_STREAM + group
    with (
        host.operator("record_param_comms", host_args),
        host.annotation("nccl:all_reduce"),
    ):
        host.wait(stream, COMPUTE_STREAM)
        host.collective(ALL_REDUCE[spec.nccl_names], gpu_args, stream, collective)


def _metadata(spec: JobSpec, collective: Collective) -> tuple[str, str]:
    """Return a collective's metadata as JSON text: for its operator, and for its kernel."""
    if not spec.collective_metadata:
        return "", ""
    dtype = "BFloat16" if spec.nccl_names == "modern" else "Float"
    description = "default_pg" if collective.group == 0 else f"dp_{collective.group}"
    text = (
        '"Collective name": "allreduce", '
        f'"In msg nelems": {collective.elements}, "Out msg nelems": {collective.elements}, '
        f'"Group size": {spec.ranks}, "dtype": "{dtype}", '
        '"In split size": "[]", "Out split size": "[]", '
        f'"Process Group Name": "{collective.group}", '
        f'"Process Group Description": "{description}", '
        f'"Process Group Ranks": "{list(range(spec.ranks))}", "Seq": {collective.seq}'
    )
    return text + ", ", ",      " + text


def _optimizer_step(host: Host) -> None:
    with (
        host.python("torch/optim/optimizer.py(485): wrapper"),
        host.annotation("Optimizer.step#AdamW.step"),
    ):
        if host.spec.ranks > 1:
            for stream in range(min(host.spec.comm_streams, host.spec.layers)):
                host.wait(COMPUTE_STREAM, FIRST_COMM_STREAM + stream)
        if host.spec.graph_launches:
            _replay_optimizer(host)
            return
        for _ in range(host.spec.layers):
            for kernel in FOREACH:
                with host.operator("aten::_foreach_addcdiv_"):
                    host.kernel(kernel)


def _replay_optimizer(host: Host) -> None:
    """Launch the same kernels as one CUDA graph: one call, one correlation, many kernels."""
    call = host.call("cudaGraphLaunch")
    for node, kernel in enumerate(FOREACH * host.spec.layers):
        op = host.queue(call, "kernel", kernel.name, kernel.ns)
        op.args = f'{kernel.args},      "graph id": 1,      "graph node id": {node + 1}'


def _read_loss(host: Host) -> Generator[None, int, None]:
    with host.operator("aten::item"), host.operator("aten::_local_scalar_dense"):
        host.copy("Memcpy DtoH (Device -> Pageable)", 4, 1, COMPUTE_STREAM)
        call = host.call("cudaStreamSynchronize")
        drained = yield
        host.now = max(host.now, drained + 2_000)
        call.dur = host.now - call.ts
        host.sync("Stream Sync", COMPUTE_STREAM, call)
