"""Checks the types of fields that were parsed from JSON, by the annotations of a data class."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Made = TypeVar("Made")
Check = Callable[[Any], bool]

_BIGINT = 1 << 63


def validated(made: Made) -> Made:
    """Check the field types of a data class and return it; integers must fit a BIGINT.

    Raises:
        TypeError: A field has the wrong type.
    """
    fields: type = type(made)
    for name, check in _checks(fields).items():
        if not check(getattr(made, name)):
            value = reprlib.repr(getattr(made, name))
            raise TypeError(f"{name} of a {type(made).__name__} is {value}")
    return made


@cache
def _checks(kind: type) -> dict[str, Check]:
    """Build the type check of each field. Cached per class, because a store has many ranks."""
    return {name: _check(hint) for name, hint in get_type_hints(kind).items()}


def _check(hint: Any) -> Check:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        checks = [_check(arg) for arg in args]
        return lambda value: any(check(value) for check in checks)
    if origin in (dict, list):
        inner = _check(args[-1])
        items: Callable[[Any], Any] = dict.values if origin is dict else iter
        return lambda value: type(value) is origin and all(map(inner, items(value)))
    if hint is int:
        return lambda value: type(value) is int and -_BIGINT <= value < _BIGINT
    return lambda value: hint is Any or type(value) is hint
