"""Errors are also the builtin ones that HTA's calls raise, so that except clauses of scripts still work."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from hta_sql import errors
from hta_sql.hta.common.trace_filter import IterationIndexFilter
from hta_sql.hta.trace_analysis import TraceAnalysis
from hta_sql.hta.trace_diff import LabeledTrace
from hta_sql.traces.output import trace_output
from tests.trace_analysis.writing import kernel, write_trace


@pytest.fixture
def analysis(tmp_path: Path) -> TraceAnalysis:
    """Open a job of one rank with one kernel."""
    write_trace(tmp_path, "a.json", [kernel(0, 10)])
    return TraceAnalysis(trace_dir=tmp_path)


def test_an_unknown_rank_is_a_value_error(analysis: TraceAnalysis) -> None:
    """An unknown rank raises ValueError, as HTA does when it looks up the frame of a rank."""
    with analysis, pytest.raises(ValueError, match="No rank 7") as raised:
        analysis.get_idle_time_breakdown(ranks=[7])
    assert isinstance(raised.value, errors.RankError)


def test_a_wrong_parameter_is_a_value_error(analysis: TraceAnalysis) -> None:
    """A wrong parameter or a missing step raises ValueError."""
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
    """A missing folder raises what HTA raises when it lists the folder, also in LabeledTrace."""
    with pytest.raises(builtin, match="nowhere") as raised:
        opened(trace_dir=tmp_path / "nowhere")
    assert isinstance(raised.value, errors.TraceNotFoundError)


def test_an_unknown_analysis_is_a_lookup_error(analysis: TraceAnalysis) -> None:
    """An unknown analysis raises LookupError with a plain message, unlike that of a KeyError."""
    with analysis, pytest.raises(LookupError) as raised:
        analysis.store.run("idle_tyme")
    assert isinstance(raised.value, errors.AnalysisNotFoundError)
    assert str(raised.value).startswith("No analysis 'idle_tyme'")


@pytest.mark.parametrize("name", errors.__all__)
def test_an_error_crosses_processes(name: str) -> None:
    """The message of an error survives pickling, whichever builtin the error also is."""
    error = getattr(errors, name)("what is wrong")
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copied) is type(error)
    assert str(copied) == "what is wrong"


def test_a_trace_that_vanished_is_not_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """An OSError of a missing trace is not mistaken for one of writing."""
    with (
        pytest.raises(errors.TraceNotFoundError, match=r"^gone$"),
        trace_output(str(tmp_path / "a.json")),
    ):
        raise errors.TraceNotFoundError("gone")
    assert list(tmp_path.iterdir()) == []
