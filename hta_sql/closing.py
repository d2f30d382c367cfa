"""What is closed when its ``with`` block ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TypeVar

_Closing = TypeVar("_Closing", bound="Closing")


class Closing(ABC):
    """Gives a class that has ``close()`` the ``with`` statement."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is open."""

    def __enter__(self: _Closing) -> _Closing:  # noqa: PYI019 - Self came with 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
