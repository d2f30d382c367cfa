"""Return profiler steps and potential stragglers, with HTA's methods."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pandas as pd

from hta_sql.errors import ParameterError
from hta_sql.hta.methods.job import Job
from hta_sql.hta.methods.showing import is_wanted, show
from hta_sql.text import NS

log = logging.getLogger(__name__)

Identify = Callable[[pd.DataFrame, None, int, bool], pd.Series]
"""HTA's signature: (metric, symbol table, candidates, visualize) ─▶ late starts per rank."""


class Stragglers(Job):
    """Methods of TraceAnalysis: steps and stragglers."""

    def get_profiler_steps(self) -> list[int]:
        """Return the numbers of the profiler steps in scope, sorted.

        Returns:
            ``N`` of each ``ProfilerStep#N`` of any rank, without the last step of each rank unless
            it is included.
        """
        return sorted(set(self.result("profiler_steps_v1", self._ranks).df()["step"].tolist()))

    def get_potential_stragglers(
        self,
        profiler_steps: list[int] | None = None,
        num_candidates: int = 2,
        visualize: bool | None = False,
        straggler_identification_impl: Identify | None = None,
    ) -> list[int]:
        """Return the ranks that are most often last to start a collective that other ranks wait in.

        Args:
            profiler_steps: Steps to analyze; None: all. Unknown steps are ignored.
            num_candidates: Number of ranks to return; at least 1.
            visualize: Whether to show the charts; None: in a notebook only.
            straggler_identification_impl: Function that counts late starts instead of the analysis.
                It is called with ``(metric, None, num_candidates, visualize)``. ``metric`` has
                ``rank, stream, iteration, name, ts, dur`` (µs) and ``normalized_start_time``; names
                are strings, so there is no symbol table. It returns a Series by rank.

        Returns:
            Ranks, the one that is late most often first. The list is empty if stragglers cannot be
            determined. In this case, a warning gives the reason, and the analysis
            ``potential_stragglers`` gives the reason for each rank.

        Raises:
            ParameterError: None of the steps exists.
        """
        candidates = max(1, num_candidates)
        steps = self._known_steps(profiler_steps)
        about = {"steps": steps, "num_candidates": candidates}
        result = self.result("potential_stragglers_v1", self._ranks, **about)
        show(result, visualize, self.store.path)
        metric = None
        if straggler_identification_impl is not None or is_wanted(visualize):
            metric = self.result("straggler_metric_v1", self._ranks, **about)
            show(metric, visualize, self.store.path)
        table = result.df()
        if table["is_candidate"].isna().all():
            reasons = ", ".join(sorted(set(table["reason"].dropna())))
            log.warning("Stragglers cannot be determined: %s.", reasons or "there are no ranks")
            return []
        if straggler_identification_impl is not None and metric is not None:
            frame = _metric_frame(metric.df())
            counts = straggler_identification_impl(frame, None, candidates, bool(visualize))
            ordered = counts.sort_values(ascending=False, kind="stable")
            return [int(rank) for rank in ordered.index[:candidates]]
        found = table[table["is_candidate"].fillna(value=False).astype(bool)]
        ordered_table = found.sort_values(["late_count", "rank"], ascending=[False, True])
        return [int(rank) for rank in ordered_table["rank"]]

    def _known_steps(self, wanted: list[int] | None) -> list[int] | None:
        if wanted is None:
            return None
        known = self.get_profiler_steps()
        steps = [step for step in wanted if step in known]
        if not steps:
            raise ParameterError(
                f"None of the profiler steps {wanted} exists; available steps: {known}."
            )
        return steps


def _metric_frame(table: pd.DataFrame) -> pd.DataFrame:
    columns: dict[str, Any] = {
        "rank": table["rank"],
        "stream": table["stream"],
        "iteration": table["step"],
        "name": table["name"],
        "ts": table["ts"] / NS,
        "dur": table["dur"] / NS,
        "normalized_start_time": table["normalized_start"],
    }
    return pd.DataFrame(columns)
