"""What describes an argument of events, and HTA's constants."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, NamedTuple

from hta_sql.errors import ParameterError
from hta_sql.hta.methods.job import DEFAULT_TRACE_DIR

__all__ = [
    "DEFAULT_CONFIG_FILENAME",
    "DEFAULT_TRACE_DIR",
    "DF_SYMBOL_COLUMNS",
    "AttributeSpec",
    "EventArgs",
    "ValueType",
    "YamlVersion",
]

DEFAULT_CONFIG_FILENAME = "trace_analyzer.json"
DF_SYMBOL_COLUMNS = ["cat", "name"]
"""Columns of a trace frame that hold numbers of symbols."""


class YamlVersion(NamedTuple):
    """Version of a list of arguments."""

    major: int
    minor: int
    patch: int

    def get_version_str(self) -> str:
        """Return ``major.minor.patch``."""
        return ".".join(map(str, self))

    @staticmethod
    def from_string(version_str: str) -> YamlVersion:
        """Read ``major.minor.patch``.

        Raises:
            ParameterError: It is no such text.
        """
        if not re.fullmatch(r"\d+\.\d+\.\d+", version_str):
            raise ParameterError(f"A version is three numbers, such as 1.0.0, not {version_str!r}.")
        return YamlVersion(*map(int, version_str.split(".")))


class ValueType(Enum):
    """What the values of an argument are."""

    Int = 1
    Float = 2
    String = 3
    Object = 4


class AttributeSpec(NamedTuple):
    """An argument of events, and the column of a trace frame that it becomes.

    Attributes:
        name: Name of the column.
        raw_name: Name of the argument in the trace.
        value_type: What its values are.
        default_value: What the column holds where an event does not have it.
        min_supported_version: Version of the list that it is in from.
    """

    name: str
    raw_name: str
    value_type: ValueType
    default_value: Any
    min_supported_version: YamlVersion


class EventArgs(NamedTuple):
    """The known arguments, by key, and groups of them."""

    AVAILABLE_ARGS: dict[str, AttributeSpec]
    ARGS_INPUT_SHAPE: list[AttributeSpec]
    ARGS_BANDWIDTH: list[AttributeSpec]
    ARGS_SYNC: list[AttributeSpec]
    ARGS_MINIMUM: list[AttributeSpec]
    ARGS_COMPLETE: list[AttributeSpec]
    ARGS_INFO: list[AttributeSpec]
    ARGS_COMMUNICATION: list[AttributeSpec]
    ARGS_TRITON_KERNELS: list[AttributeSpec]
    ARGS_DEFAULT: list[AttributeSpec]
