"""The two sides of a comparison, and the differences between their operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hta_sql.library.parameters import narrowing
from hta_sql.library.sql_files import query_sql
from hta_sql.results.result import Result
from hta_sql.store.query.trace_store import TraceStore


@dataclass(frozen=True)
class Side:
    """The scope of one side of a comparison.

    Attributes:
        store: The store.
        run: A run of the store.
        ranks: Ranks; None: all.
        steps: Profiler steps; None: all events, inside and outside of steps.
    """

    store: TraceStore
    run: str
    ranks: list[int] | None = None
    steps: list[int] | None = None

    def ops(self, **parameters: Any) -> Result:
        """Run ``ops_by_name`` on this side.

        Raises:
            RankError: The run or a rank does not exist.
        """
        return self.store.run("ops_by_name_v1", **self._scope(), **parameters)

    def contents(self, include_last_profiler_step: bool = False) -> Result:
        """Run ``step_contents`` on this side.

        Raises:
            RankError: The run or a rank does not exist.
        """
        scope = {**self._scope(), "include_last_profiler_step": include_last_profiler_step}
        return self.store.run("step_contents_v1", **scope)

    def idle(self, include_last_profiler_step: bool = False) -> Result:
        """Run ``idle_causes`` on this side: host activity while the devices were idle."""
        scope = {**self._scope(), "include_last_profiler_step": include_last_profiler_step}
        return self.store.run("idle_causes_v1", **scope)

    def stragglers(self) -> Result:
        """Run ``stragglers`` on this side."""
        scope = self._scope()
        return self.store.run("stragglers_v1", runs=scope["runs"], ranks=scope["ranks"])

    def _scope(self) -> dict[str, Any]:
        return {"runs": [self.run], "ranks": self.ranks, "steps": self.steps}

    def known_steps(self) -> list[int]:
        """List the profiler steps of the run, including the last one."""
        steps: list[int] = dict(self.store.sql(query_sql("runs", "steps")).rows()).get(self.run, [])
        return steps

    def step_share(self) -> float | None:
        """Return the share of the recording that is in steps; None without steps."""
        ((share,),) = self.store.sql(query_sql("runs", "step_share"), {"run": self.run}).rows()
        return share if share is None else float(share)


def compare(control: Side, test: Side, **parameters: Any) -> Result:
    """Compare the operations of two sides, in one store or two, by name.

    Args:
        control: The baseline.
        test: The side that is compared with it.
        **parameters: Parameters of the analysis ``ops_by_name`` other than its scope, and
            ``include_last_profiler_step``. ``by_step_number`` is false by default, as in
            ``trace_diff``.

    Returns:
        The columns of the analysis ``trace_diff``, sorted by change in duration, largest first.

    Raises:
        RankError: A run or rank does not exist.
        ParameterError: An unknown parameter, or a value of the wrong type.
    """
    chosen = {"by_step_number": False, **parameters}
    sides = {"control_ops": control.ops(**chosen), "test_ops": test.ops(**chosen)}
    return control.store.run_over(
        "trace_diff_v1",
        query_sql("comparison", "operators"),
        {name: ops.arrow() for name, ops in sides.items()},
        {"control": control.run, "test": test.run},
        given=narrowing(
            {
                "ranks": control.ranks or test.ranks,
                "steps": control.steps or test.steps,
                **parameters,
            }
        ),
    )
