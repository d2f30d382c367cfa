"""HTA's functions that read one trace; there is one way to read here, in bounded memory."""

from __future__ import annotations

from typing import Any

import pandas as pd

from hta_sql.hta.common.trace import parse_trace_file
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable
from hta_sql.hta.configs.parser_config import DEFAULT_PARSE_VERSION, ParserBackend, ParserConfig
from hta_sql.traces.whole_files import read_trace

__all__ = [
    "DEFAULT_PARSE_VERSION",
    "get_default_trace_parsing_backend",
    "parse_trace_dataframe",
    "parse_trace_dict",
    "set_default_trace_parsing_backend",
]

_CHOSEN = {"backend": ParserBackend.JSON}


def parse_trace_dict(trace_file_path: str) -> dict[str, Any]:
    """Read a whole trace as Python objects; see :func:`hta_sql.hta.common.trace_file.read_trace`."""
    return read_trace(trace_file_path)


def parse_trace_dataframe(
    trace_file_path: str, cfg: ParserConfig
) -> tuple[dict[str, Any], pd.DataFrame, TraceSymbolTable]:
    """Read one trace; see :func:`hta_sql.hta.common.trace.parse_trace_file`."""
    return parse_trace_file(trace_file_path, cfg)


def set_default_trace_parsing_backend(parser_backend: ParserBackend) -> None:
    """Keep the value, without effect."""
    _CHOSEN["backend"] = ParserBackend(parser_backend)


def get_default_trace_parsing_backend() -> ParserBackend:
    """Return what was set."""
    return _CHOSEN["backend"]
