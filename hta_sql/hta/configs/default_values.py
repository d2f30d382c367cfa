"""Define how an event argument becomes a frame column."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

__all__ = ["AttributeSpec", "ValueType"]


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
    """

    name: str
    raw_name: str
    value_type: ValueType
    default_value: Any
