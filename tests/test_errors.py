"""Tests that errors are also the builtin exceptions that HTA raises, so that scripts still work."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import hta_sql
from hta_sql import errors
from hta_sql.hta.common.trace_filter import IterationIndexFilter
from hta_sql.hta.trace_analysis import TraceAnalysis
from hta_sql.hta.trace_diff import LabeledTrace
from hta_sql.traces.output import trace_output
from tests.trace_analysis.writing import kernel, write_trace


@pytest.fixture
def analysis(tmp_path: Path) -> TraceAnalysis:
    """Open a job of one rank with a single kernel."""
    write_trace(tmp_path, "a.json", [kernel(0, 10)])
    return TraceAnalysis(trace_dir=tmp_path)


def test_an_unknown_rank_is_a_value_error(analysis: TraceAnalysis) -> None:
    """An unknown rank raises ValueError, as HTA does when it looks up a rank's data frame."""
    with analysis, pytest.raises(ValueError, match="No rank 7") as raised:
        analysis.get_idle_time_breakdown(ranks=[7])
    assert isinstance(raised.value, errors.RankError)


def test_a_wrong_parameter_is_a_value_error(analysis: TraceAnalysis) -> None:
    """An invalid parameter raises ValueError."""
    with analysis, pytest.raises(ValueError, match="operator_name is empty") as raised:
        analysis.get_frequent_cuda_kernel_sequences("", None)
    assert isinstance(raised.value, errors.ParameterError)


def test_a_value_of_the_wrong_type_is_a_type_error() -> None:
    """A value of the wrong type raises TypeError, as HTA's filters do."""
    with pytest.raises(TypeError, match="iteration_index is '0'") as raised:
        IterationIndexFilter("0")  # type: ignore[arg-type]  # on purpose
    assert isinstance(raised.value, errors.ParameterError)


@pytest.mark.parametrize("builtin", [FileNotFoundError, ValueError])
@pytest.mark.parametrize("opened", [TraceAnalysis, LabeledTrace])
def test_a_missing_folder_is_what_hta_raises(
    opened: Callable[..., object], builtin: type[Exception], tmp_path: Path
) -> None:
    """A missing folder raises the exception that HTA raises when it lists the folder."""
    with pytest.raises(builtin, match="nowhere") as raised:
        opened(trace_dir=tmp_path / "nowhere")
    assert isinstance(raised.value, errors.TraceNotFoundError)


def test_an_unknown_analysis_is_a_lookup_error(analysis: TraceAnalysis) -> None:
    """An unknown analysis raises LookupError with a plain message, unlike KeyError's."""
    with analysis, pytest.raises(LookupError) as raised:
        analysis.store.run("idle_tyme")
    assert isinstance(raised.value, errors.AnalysisNotFoundError)
    assert str(raised.value).startswith("No analysis 'idle_tyme'")


@pytest.mark.parametrize("name", errors.__all__)
def test_an_error_crosses_processes(name: str) -> None:
    """The type and message of each error survive pickling."""
    error = getattr(errors, name)("what is wrong")
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copied) is type(error)
    assert str(copied) == "what is wrong"


def test_a_trace_that_vanished_is_not_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A missing trace is not reported as a failure to write the output."""
    with (
        pytest.raises(errors.TraceNotFoundError, match=r"^gone$"),
        trace_output(str(tmp_path / "a.json")),
    ):
        raise errors.TraceNotFoundError("gone")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a?b.store", "a\\b.store"])
def test_a_path_at_which_the_engine_cuts_names_is_refused(tmp_path: Path, name: str) -> None:
    """The message says which character it is; nothing is written."""
    trace = Path(__file__).parent / "traces" / "one_step.json"
    with pytest.raises(hta_sql.StoreError, match="must not contain"):
        hta_sql.ingest(trace, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
