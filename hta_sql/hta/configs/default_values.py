"""Define how event arguments become frame columns, and the name of the settings file."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

__all__ = ["DEFAULT_CONFIG_FILENAME", "AttributeSpec", "ValueType", "YamlVersion"]

DEFAULT_CONFIG_FILENAME = "trace_analyzer.json"


class YamlVersion(NamedTuple):
    """Version of the list of arguments; only one version exists here."""

    major: int
    minor: int
    patch: int


class ValueType(Enum):
    """Type of an argument's values."""

    Int = 1
    Float = 2
    String = 3
    Object = 4


class AttributeSpec(NamedTuple):
    """An event argument and the trace frame column that it becomes.

    Attributes:
        name: Name of the column.
        raw_name: Name of the argument in the trace.
        value_type: Type of the values.
        default_value: Value of the column for events without the argument.
        min_supported_version: Version of the list that introduced the argument.
    """

    name: str
    raw_name: str
    value_type: ValueType
    default_value: Any
    min_supported_version: YamlVersion
