"""Computes items in threads ahead of their consumer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")


def computed_ahead(
    function: Callable[[Item], Value], items: Iterable[Item], threads: int
) -> Generator[Value, None, None]:
    """Yield ``function(item)`` for each item, in order.

    At most ``threads + 1`` values are computed or waiting for the consumer. If the consumer stops,
    values that are not being computed yet are canceled.

    Args:
        function: Thread-safe function.
        items: The items.
        threads: Number of threads. With 1, a value is computed while the previous one is consumed.

    Raises:
        Exception: What the function raised for the item that is due.
    """
    pool = ThreadPoolExecutor(threads)
    ahead: deque[Future[Value]] = deque()
    try:
        for item in items:
            ahead.append(pool.submit(function, item))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
