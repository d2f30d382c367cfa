"""Provide a base class of context managers that close on exit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TypeVar

_Closing = TypeVar("_Closing", bound="Closing")


class Closing(ABC):
    """Base class that adds the ``with`` statement to a class with ``close()``."""

    @abstractmethod
    def close(self) -> None:
        """Release all open resources."""

    def __enter__(self: _Closing) -> _Closing:  # noqa: PYI019 - Self needs Python 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
