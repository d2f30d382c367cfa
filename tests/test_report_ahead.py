"""Tests of values that threads compute ahead of their consumer."""

from __future__ import annotations

from threading import Event
from time import sleep

import pytest

from hta_sql.report.answers import computed_ahead


@pytest.mark.parametrize("threads", [1, 2])
def test_values_come_in_the_order_of_the_items(threads: int) -> None:
    """Later values wait for a slow value and do not overtake it."""

    def slowest_first(item: int) -> int:
        sleep(0.02 if item == 0 else 0)
        return item * item

    assert list(computed_ahead(slowest_first, range(5), threads)) == [0, 1, 4, 9, 16]


def test_two_values_are_computed_at_a_time() -> None:
    """Two values are computed concurrently: here, the first one waits until the second starts."""
    started = Event()

    def computed(item: int) -> bool:
        if item:
            started.set()
        return started.wait(10)

    assert list(computed_ahead(computed, range(2), 2)) == [True, True]


def test_few_values_are_computed_before_they_are_consumed() -> None:
    """After a consumer has received one value, at most two more have been computed."""
    computed: list[int] = []
    values = computed_ahead(computed.append, range(20), 2)
    next(values)
    sleep(0.05)
    assert len(computed) <= 3
    values.close()
    assert len(computed) <= 3


def test_an_error_is_raised_for_its_item() -> None:
    """Values before a failing item are returned before its error is raised."""
    values = computed_ahead(lambda item: 1 // item, (2, 1, 0, 3), 2)
    assert [next(values), next(values)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(values)
