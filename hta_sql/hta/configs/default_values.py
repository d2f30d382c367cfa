"""What describes an argument of events and the column that it becomes; the name of files of settings."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

__all__ = ["DEFAULT_CONFIG_FILENAME", "AttributeSpec", "ValueType", "YamlVersion"]

DEFAULT_CONFIG_FILENAME = "trace_analyzer.json"


class YamlVersion(NamedTuple):
    """Version of a list of arguments; here is one list."""

    major: int
    minor: int
    patch: int


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
