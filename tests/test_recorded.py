"""Tests on a trace that torch 2.13 recorded on the CPU with all options.

It has two steps of a small network.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import hta_sql

TRACE = Path(__file__).parent / "traces" / "recorded" / "mlp_cpu_torch_2_13.json.gz"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest the trace once."""
    with hta_sql.ingest(str(TRACE), tmp_path_factory.mktemp("recorded") / "store") as opened:
        yield opened


def test_every_event_is_there(store: hta_sql.TraceStore) -> None:
    """Each event in the file is one row in exactly one table."""
    in_file = len(json.loads(gzip.decompress(TRACE.read_bytes()))["traceEvents"])
    assert store.sql("SELECT count(*), count(DISTINCT event_id) FROM events").rows() == [
        (in_file, in_file)
    ]
    assert store.sql("FROM quarantine").rows() == []


def test_python_parents_are_those_of_torch(store: hta_sql.TraceStore) -> None:
    """If a frame's parent in the call tree is a frame, torch recorded the same parent."""
    query = """
        SELECT count(*), count(*) FILTER (p.python_id = c.python_parent_id)
        FROM python_calls AS c
        JOIN python_calls AS p ON p.event_id = c.parent_id
    """
    ((frames, same),) = store.sql(query).rows()
    assert frames > 100
    assert same == frames


def test_operators_know_their_surroundings(store: hta_sql.TraceStore) -> None:
    """Operators of the two forward passes are in their annotation and in the right modules."""
    query = """
        SELECT a.name, m.name, count(*)
        FROM cpu_ops AS c
        JOIN annotations AS a ON a.event_id = c.annotation_id
        JOIN python_calls AS m ON m.event_id = c.module_id
        WHERE c.name = 'aten::addmm'
        GROUP BY ALL
        ORDER BY ALL
    """
    assert store.sql(query).rows() == [
        ("## forward ##", "nn.Module: Linear_0", 2),
        ("## forward ##", "nn.Module: Linear_1", 2),
    ]


def test_backward_operators_know_their_forward_operator(store: hta_sql.TraceStore) -> None:
    """AddmmBackward0 is linked to aten::addmm by the recorded arrows."""
    query = """
        SELECT DISTINCT f.name
        FROM cpu_ops AS b
        JOIN cpu_ops AS f ON f.event_id = b.fwd_op_id
        WHERE b.name LIKE '%AddmmBackward0'
    """
    assert store.sql(query).rows() == [("aten::addmm",)]


def test_memory_events_know_their_operator(store: hta_sql.TraceStore) -> None:
    """Every allocation in the forward pass happened inside an operator."""
    query = """
        SELECT count(*) FILTER (m.op_id IS NULL), count(*) > 10
        FROM memory_events AS m
        JOIN annotations AS a ON a.event_id = m.annotation_id
        WHERE a.name = '## forward ##' AND m.bytes > 0
    """
    assert store.sql(query).rows() == [(0, True)]


def test_steps(store: hta_sql.TraceStore) -> None:
    """The trace has two steps, of which only the later one is marked as the last."""
    assert store.sql("SELECT step, is_last FROM steps ORDER BY step").rows() == [
        (2, False),
        (3, True),
    ]
