"""Noise of a difference, estimated from steps or repeated baseline runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from math import sqrt

from hta_sql.comparison.gate.values import Value
from hta_sql.library.sql_files import query_sql
from hta_sql.store.query.trace_store import TraceStore

ENOUGH_RUNS = 3
"""Minimum number of baseline runs to estimate the noise from; two give a lower bound only."""

_MEDIAN = 1.2533
"""Standard error of a median relative to that of a mean, for normally distributed samples."""


class Chance:
    """Student's t intervals, as in the analysis ``comparison``.

    Args:
        store: Store used to query the quantiles.
    """

    def __init__(self, store: TraceStore) -> None:
        self._quantiles = store.sql(query_sql("comparison", "quantiles")).rows()

    def t(self, freedom: int, *, of_many: bool) -> float:
        """Return the 99 % quantile, or the 99.9 % quantile if the rule has many values."""
        return float(self._quantiles[min(freedom, len(self._quantiles)) - 1][of_many])

    def of_steps(
        self, baseline: Value, candidate: Value, *, aggregate: str | None, of_many: bool
    ) -> float | None:
        """Return the noise of a difference of values; None if a side has fewer than two samples.

        A value other than the mean of its samples, such as a total, is assumed to have the relative
        uncertainty of that mean.
        """
        sides = (baseline, candidate)
        if baseline.number is None or candidate.number is None or min(_counts(*sides)) < 2:
            return None
        variance = sum(_variance(side, aggregate) for side in sides)
        if variance == 0:
            return 0.0
        return sqrt(variance) * self.t(sum(_counts(*sides)) - 2, of_many=of_many)

    def of_runs(self, values: Sequence[float], *, of_many: bool) -> float | None:
        """Return how far another run may be from the mean of the values; None for fewer than two.

        For two values, it is their difference, which is a lower bound only.
        """
        if len(values) < 2:
            return None
        if len(values) < ENOUGH_RUNS:
            return max(values) - min(values)
        spread = statistics.stdev(values) * sqrt(1 + 1 / len(values))
        return spread * self.t(len(values) - 1, of_many=of_many) if spread else 0.0


def _counts(*sides: Value) -> list[int]:
    return [len(side.samples) for side in sides]


def _variance(side: Value, aggregate: str | None) -> float:
    """Return the variance of a side's value: a single sample, or the mean or median of samples."""
    variance = statistics.variance(side.samples)
    if aggregate in ("one", "max", "min"):
        return variance
    mean = statistics.fmean(side.samples)
    scale = side.number / mean if mean and side.number else 1.0
    factor = _MEDIAN if aggregate == "median" else 1.0
    return variance / len(side.samples) * (scale * factor) ** 2
