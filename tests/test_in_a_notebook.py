"""What a notebook shows and completes: tables, descriptions, names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hta_sql
from hta_sql.errors import ParameterError
from tests.golden_cases import TESTS
from tests.report_pages import Elements

TRACE = str(TESTS / "traces" / "every_table.json")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """One small rank."""
    path = Path(tmp_path_factory.mktemp("notebook")) / "job.store"
    with hta_sql.ingest([TRACE], path, run="job", jobs=1) as opened:
        yield opened


def test_a_result_is_a_table(store: hta_sql.TraceStore) -> None:
    """In human units, with the words of its columns and what it is; names of a trace are text."""
    markup = store.run("gpu_kernels_by_name")._repr_html_()
    assert {"table", "th", "td"} <= set(Elements(markup).tags)
    assert "gpu_kernels_by_name_v1" in markup
    assert 'title="Run name."' in markup
    evil = store.sql("SELECT '<script>x</script>' AS name FROM range(30)")._repr_html_()
    assert "script" not in Elements(evil).tags
    assert "(30 rows, 20 shown; exact values: .df()" in evil


def test_a_store_and_a_description_show_themselves(store: hta_sql.TraceStore) -> None:
    """The runs that are in it; parameters, columns and SQL."""
    assert "<td>job</td>" in store._repr_html_()
    markup = store.describe("idle_causes")._repr_html_()
    assert "include_last_profiler_step" in markup
    assert "details" in Elements(markup).tags
    assert store.analyses.idle_causes._repr_html_() == markup


def test_names_are_completed_and_called(store: hta_sql.TraceStore) -> None:
    """With the parameters and the help of the SQL file."""
    assert "idle_causes" in dir(store.analyses)
    assert "gpu_ops" in dir(store.tables)
    rows = store.analyses.profiler_steps(ranks=0).rows()
    assert rows == store.run("profiler_steps", ranks=[0]).rows()
    assert store.tables.gpu_ops().rows() == store.table("gpu_ops").rows()
    call = store.analyses.idle_causes
    assert "ranks" in inspect.signature(call).parameters
    assert (call.__doc__ or "").startswith(store.describe("idle_causes").summary)
    with pytest.raises(
        AttributeError, match=r"No analysis 'idle_cause'\. Did you mean 'idle_causes'"
    ):
        store.analyses.idle_cause()


@pytest.mark.parametrize("ranks", [0, np.int64(0), [0], (0,), np.array([0])])
def test_one_value_stands_for_a_list_of_it(store: hta_sql.TraceStore, ranks: object) -> None:
    """As users of pandas expect; a value of another type is told."""
    assert store.run("profiler_steps", ranks=ranks, runs="job").rows() == (
        store.run("profiler_steps", ranks=[0], runs=["job"]).rows()
    )
    with pytest.raises(ParameterError, match="ranks takes an integer, not 'zero'"):
        store.run("profiler_steps", ranks="zero")
