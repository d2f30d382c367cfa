"""Validates the arguments of a call against the declared parameters of an analysis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hta_sql.errors import ParameterError, nearest
from hta_sql.library.declared import Parameter
from hta_sql.library.objects import SqlObject

_SCALARS: dict[str, tuple[type, ...]] = {
    "BIGINT": (int,),
    "INTEGER": (int,),
    "DOUBLE": (int, float),
    "VARCHAR": (str,),
    "BOOLEAN": (bool,),
}
TYPES = tuple(_SCALARS)
"""Allowed types of a parameter, or of the items of a list parameter."""

_WORDS = {
    "BIGINT": "an integer",
    "INTEGER": "an integer",
    "DOUBLE": "a number",
    "VARCHAR": "a string",
    "BOOLEAN": "True or False",
}


def check_parameters(analysis: SqlObject, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values to bind, after validation; None is omitted if it is the default.

    Raises:
        ParameterError: Unknown name, or a value of the wrong type.
    """
    declared = {parameter.name: parameter for parameter in analysis.parameters}
    values = {}
    for name, value in given.items():
        if name not in declared:
            raise ParameterError(
                f"{analysis.base_name} has no parameter {name!r}.{nearest(name, declared)} "
                f"Available: {', '.join(declared)}."
            )
        if value is not None or declared[name].default != "NULL":
            values[name] = _fit(analysis.base_name, declared[name], value)
    return values


def _fit(analysis: str, parameter: Parameter, value: Any) -> Any:
    if value is None:
        return None
    kind = parameter.type or ""
    if not kind.endswith("[]"):
        return _scalar(analysis, parameter.name, kind, value)
    # A single value is a list of one: ranks=0, runs="base".
    values = value if _is_list(value) else [value]
    return [_scalar(analysis, parameter.name, kind[:-2], item) for item in values]


def _is_list(value: Any) -> bool:
    if isinstance(value, (str, bytes)):
        return False
    # NumPy scalars have no dimension; arrays do.
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0


def _scalar(analysis: str, name: str, kind: str, value: Any) -> Any:
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()  # NumPy scalars
    allowed = _SCALARS[kind]
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise ParameterError(f"{analysis}: {name} must be {_WORDS[kind]}, not {value!r}.")
    return value


def narrowing(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parameters that restrict rows; Boolean ones only change how rows are counted."""
    return tuple(
        name for name, value in given.items() if value is not None and not isinstance(value, bool)
    )


def taken_by(analysis: SqlObject, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given parameters that an analysis accepts."""
    known = {parameter.name for parameter in analysis.parameters}
    return {key: value for key, value in parameters.items() if key in known}
