"""Tests of the memory analyses on a training job of known size.

torch 2.13 recorded the job on the CPU (tests/traces/recorded).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hta_sql

TRACE = Path(__file__).parent / "traces" / "recorded" / "memory_cpu_torch_2_13.json.gz"

STEPS, BATCH, INPUTS, HIDDEN, OUTPUTS = 4, 32, 64, 256, 10
"""Sizes from record_memory.py."""

FLOAT = 4
LAYERS = [INPUTS * HIDDEN, HIDDEN, HIDDEN * OUTPUTS, OUTPUTS]
PARAMETERS = FLOAT * sum(LAYERS)
"""Size of the weights, which their gradients and the optimizer's momentum have too [bytes]."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest the trace once."""
    folder = tmp_path_factory.mktemp("memory")
    with hta_sql.ingest(str(TRACE), folder / "store", run="job") as opened:
        yield opened


def test_parameters_states_and_gradients_have_the_size_of_the_network(
    store: hta_sql.TraceStore,
) -> None:
    """Parameters and momentum are allocated once and never freed; zero_grad frees the gradients."""
    query = """
        SELECT category, step, state, count(*), sum(bytes)::BIGINT
        FROM memory_allocations
        WHERE category IN ('parameter', 'optimizer state', 'gradient')
        GROUP BY ALL
        ORDER BY ALL
    """
    assert store.sql(query).rows() == [
        *(("gradient", step, "freed", 4, PARAMETERS) for step in range(STEPS)),
        ("optimizer state", 0, "held to the end", 4, PARAMETERS),
        ("parameter", 0, "held to the end", 4, PARAMETERS),
    ]


def test_gradients_and_activations_are_of_their_layers(store: hta_sql.TraceStore) -> None:
    """A weight gradient belongs to the module and line of its forward operator.

    Bias gradients are sums without a module.
    """
    query = """
        SELECT category, operator_name, module, frame, bytes
        FROM memory_allocations(steps := [2])
        WHERE category IN ('gradient', 'activation') AND module IS NOT NULL
        ORDER BY ALL
    """
    forward = "record_memory.py(31): forward"
    assert store.sql(query).rows() == [
        ("activation", "aten::addmm", "Linear_0", forward, FLOAT * BATCH * HIDDEN),
        ("activation", "aten::addmm", "Linear_1", forward, FLOAT * BATCH * OUTPUTS),
        ("activation", "aten::clamp_min", "Network_0", forward, FLOAT * BATCH * HIDDEN),
        ("gradient", "aten::mm", "Linear_0", forward, FLOAT * INPUTS * HIDDEN),
        ("gradient", "aten::mm", "Linear_1", forward, FLOAT * HIDDEN * OUTPUTS),
    ]


def test_what_each_step_leaves_behind_is_found_with_its_line(store: hta_sql.TraceStore) -> None:
    """The output that the loop retains grows in each step, but parameters and momentum do not."""
    query = """
        SELECT is_growing, operator_name, frame, category, growth_bytes, live_bytes
        FROM memory_leaks
    """
    output = FLOAT * BATCH * OUTPUTS
    train = "record_memory.py(36): train"
    assert store.sql(query).rows() == [
        (True, "aten::clone", train, None, output, STEPS * output),
        (False, "aten::clone", train, "optimizer state", None, PARAMETERS),
        (False, "aten::empty", "record_memory.py(26): __init__", "parameter", None, PARAMETERS),
    ]


def test_the_peak_is_what_the_allocator_wrote_and_its_parts_are_those_of_the_step(
    store: hta_sql.TraceStore,
) -> None:
    """The parts at the peak add up to the peak, which is in a backward pass."""
    ((highest,),) = store.sql("SELECT max(total_allocated_bytes) FROM memory_events").rows()
    query = "SELECT category, sum(bytes)::BIGINT FROM live_at_peak GROUP BY ALL"
    parts = dict(store.sql(query).rows())
    assert sum(parts.values()) == highest
    output = FLOAT * BATCH * OUTPUTS
    assert parts == {
        "parameter": PARAMETERS,
        "optimizer state": PARAMETERS,
        "gradient": PARAMETERS,
        "autograd": FLOAT * BATCH * HIDDEN,
        # The backward pass also frees the batch.
        "activation": FLOAT * BATCH * INPUTS + output,
        # Outputs of the previous steps, plus the loss and its gradient.
        None: (STEPS - 1) * output + 2 * FLOAT,
    }


def test_what_operators_keep_is_what_more_is_in_use(store: hta_sql.TraceStore) -> None:
    """The increases of all operators add up to the memory growth; the curve contains the peak."""
    ((before, after, at),) = store.sql(
        "SELECT before_bytes, end_bytes, peak_event_id FROM memory_peaks"
    ).rows()
    query = """
        SELECT sum(self_increase_bytes)::BIGINT
        FROM memory_by_operator(include_last_profiler_step := true)
    """
    assert store.sql(query).rows() == [(after - before,)]
    assert after - before == 2 * PARAMETERS + STEPS * FLOAT * BATCH * OUTPUTS
    ((peak,),) = store.sql(
        "SELECT event_id FROM memory_curve(max_points := 50) WHERE is_peak"
    ).rows()
    assert peak == at
