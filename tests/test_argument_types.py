"""Tests of the argument types that `hta-sql doctor` reports."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from hta_sql.errors import ParameterError, TraceFormatError, TraceNotFoundError
from hta_sql.traces.argument_types import ArgumentTypes, check_argument_types


def trace(folder: Path, *args: Any, name: str = "trace.json") -> str:
    """Write a trace with one event for each element of ``args``."""
    events = [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": a} for a in args]
    text = json.dumps({"traceEvents": [*events, {"ph": "s", "id": 1, "ts": 1}]}).encode("utf-8")
    path = folder / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    return str(path)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_good_trace(tmp_path: Path, name: str) -> None:
    """An integer is a valid number, lists are not checked, and null counts as no value."""
    path = trace(
        tmp_path,
        {"Python parent id": None},
        {"stream": 7, "memory bandwidth (GB/s)": 1, "Input Dims": []},
        name=name,
    )
    for level in ("standard", "complete"):
        assert check_argument_types(path, level) == ArgumentTypes()


def test_types(tmp_path: Path) -> None:
    """The first value of a wrong type is reported together with its event."""
    path = trace(
        tmp_path, {"stream": 7}, {"stream": "7"}, {"stream": None, "dtype": 3}, {"cbid": ""}
    )
    assert check_argument_types(path).violations == {
        "stream": "key=stream: value='7' type=str; expect_type=integer (event 1)",
        "dtype": "key=dtype: value=3 type=int; expect_type=text (event 2)",
    }
    assert set(check_argument_types(path, "minimal").violations) == {"stream"}
    assert set(check_argument_types(path, "complete").violations) == {"stream", "dtype", "cbid"}


def test_violations_of_one_event(tmp_path: Path) -> None:
    """Violations are listed in trace order, and long values are truncated."""
    wrong = {"stream": "7", "dtype": 1, "correlation": "c", "device": "x" * 1000, "bytes": "b"}
    found = check_argument_types(trace(tmp_path, wrong)).violations
    assert list(found) == [name for name in wrong if name in found]
    assert len(found) > 3
    assert all(len(text) < 200 for text in found.values())


def test_what_is_no_event(tmp_path: Path) -> None:
    """An entry that is not an event is reported, and the events after it are still checked."""
    path = Path(trace(tmp_path, {"stream": 7}, {"stream": "7"}))
    path.write_text(path.read_text().replace("}}, ", "}}, null, 5, ", 1))
    found = check_argument_types(str(path))
    assert found.no_event == "not an event: None (event 1)"
    assert "(event 3)" in found.violations["stream"]


def test_unknown_arguments(tmp_path: Path) -> None:
    """Unknown arguments are counted, and so are arguments beyond the requested level."""
    path = trace(tmp_path, {"mine": 1, "stream": 7}, {"mine": 2, "cbid": 3})
    assert check_argument_types(path, "standard").unknown == {"mine": 2, "cbid": 1}
    assert check_argument_types(path, "complete").unknown == {"mine": 2}


def test_arguments_that_are_none(tmp_path: Path) -> None:
    """Event arguments that are not a JSON object are reported."""
    found = check_argument_types(trace(tmp_path, [1]))
    assert found == ArgumentTypes(no_arguments="args is not a dict: [1] (event 0)")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        '{"traceEvents": [{"ph": "X", "args": {"stream": }}]}',
        '{"traceEvents": [{"ph": "X"}',
        '{"events": []}',
        "[1, 2]",
        '{"traceEvents": [' + "[" * 100_000 + "]" * 100_000 + "]}",
    ],
)
def test_what_cannot_be_read(tmp_path: Path, text: str) -> None:
    """An unreadable file yields a result that contains the reason."""
    path = tmp_path / "trace.json"
    path.write_text(text, encoding="utf-8")
    found = check_argument_types(str(path))
    assert isinstance(found.unread, TraceFormatError)
    assert found == ArgumentTypes(unread=found.unread)


def test_no_file_and_no_level(tmp_path: Path) -> None:
    """A missing file is reported in the result, but an unknown level is a usage error."""
    assert isinstance(check_argument_types(str(tmp_path / "no.json")).unread, TraceNotFoundError)
    with pytest.raises(ParameterError, match="minimal, standard, complete"):
        check_argument_types("x.json", "default")


def test_what_is_wrong_before_a_broken_event_is_told_too(tmp_path: Path) -> None:
    """Violations before a broken event are reported, although reading stops at that event."""
    path = tmp_path / "trace.json"
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": {"stream": "7"}}
    wrong = ", ".join([json.dumps(event)] * 10_000)
    path.write_text(f'{{"traceEvents": [{wrong}, {{"ph": "X", "args": }}]}}')
    found = check_argument_types(str(path))
    assert isinstance(found.unread, TraceFormatError)
    assert list(found.violations) == ["stream"]
