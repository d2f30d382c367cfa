"""Compare two traces with HTA's TraceDiff and LabeledTrace, over stores.

Counts and durations come from the analysis ``ops_by_name``, their difference from the SQL of the
analysis ``trace_diff``. This module converts them to HTA's columns and microseconds.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pandas as pd

from hta_sql.comparison.sides import compare
from hta_sql.errors import ParameterError
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.labeled_trace import SIDES, DeviceType, LabeledTrace, Wanted
from hta_sql.hta.methods.job import Job
from hta_sql.hta.methods.showing import display, in_notebook
from hta_sql.text import NS

__all__ = ["DeviceType", "LabeledTrace", "TraceDiff"]

log = logging.getLogger(__name__)

CHANGES = ("added", "deleted", "increased", "decreased", "unchanged")
_SIGNS = {"added": "+", "increased": "+", "deleted": "-", "decreased": "-", "unchanged": "="}

Given = LabeledTrace | Job | Trace | str | os.PathLike[str]


class TraceDiff:
    """Compare two traces; ``control`` and ``test`` are LabeledTraces or folders of traces."""

    @classmethod
    def compare_traces(  # noqa: PLR0917 - HTA's signature
        cls,
        control: Given,
        test: Given,
        control_rank: Wanted = None,
        test_rank: Wanted = None,
        control_iteration: Wanted = None,
        test_iteration: Wanted = None,
        device_type: DeviceType = DeviceType.ALL,
        use_short_name: bool = False,
        *,
        by_step_number: bool = True,
    ) -> pd.DataFrame:
        """Compare counts and durations of operators and kernels.

        Args:
            control: Baseline: a LabeledTrace, a TraceAnalysis or its ``t``, or a folder.
            test: Trace to compare with the baseline.
            control_rank: Rank or ranks of the control; default: its first.
            test_rank: Rank or ranks of the test; default: its first.
            control_iteration: Profiler step or steps of the control; default: its first.
            test_iteration: Profiler step or steps of the test; default: its first.
            device_type: Compare operations on the host, on the device, or both.
            use_short_name: Compare by names without template arguments, parameters and types.
            by_step_number: Whether ``ProfilerStep#3`` and ``ProfilerStep#8`` are different names,
                like in HTA; False combines all steps in one row, ``ProfilerStep``.

        Returns:
            Indexed by ``name`` or ``short_name``, sorted: ``<control>_counts,
            <control>_total_duration, <test>_counts, <test>_total_duration, diff_counts,
            diff_duration (test minus control), counts_change_categories (+, - or =)``; times in µs.
            A name shared by host and device, or by several categories, has one row.

        Raises:
            RankError: A rank does not exist.
            ParameterError: A step does not exist, or the argument is not a trace.
        """
        frame, _ = cls._compared(
            (control, control_rank, control_iteration),
            (test, test_rank, test_iteration),
            device_type,
            use_short_name=use_short_name,
            by_step_number=by_step_number,
        )
        return frame

    @classmethod
    def ops_diff(  # noqa: PLR0917 - HTA's signature
        cls,
        control: Given,
        test: Given,
        control_rank: Wanted = None,
        test_rank: Wanted = None,
        control_iteration: Wanted = None,
        test_iteration: Wanted = None,
        device_type: DeviceType = DeviceType.ALL,
        *,
        by_step_number: bool = True,
    ) -> dict[str, list[str]]:
        """Return which operators and kernels were added, deleted, or run more or less often.

        Args:
            control: See :meth:`compare_traces`, also for the other arguments.
            test: Trace to compare with the baseline.
            control_rank: Rank or ranks of the control.
            test_rank: Rank or ranks of the test.
            control_iteration: Profiler step or steps of the control.
            test_iteration: Profiler step or steps of the test.
            device_type: Operations on the host, on the device, or both.
            by_step_number: Whether steps with different numbers have different names.

        Returns:
            ``added, deleted, increased, decreased, unchanged``, each a sorted list of names.

        Raises:
            RankError: A rank does not exist.
            ParameterError: A step does not exist, or the argument is not a trace.
        """
        frame, changes = cls._compared(
            (control, control_rank, control_iteration),
            (test, test_rank, test_iteration),
            device_type,
            use_short_name=False,
            by_step_number=by_step_number,
        )
        return {change: list(frame.index[changes == change]) for change in CHANGES}

    @classmethod
    def _compared(
        cls,
        control: tuple[Given, Wanted, Wanted],
        test: tuple[Given, Wanted, Wanted],
        device_type: DeviceType,
        *,
        use_short_name: bool,
        by_step_number: bool,
    ) -> tuple[pd.DataFrame, pd.Series[Any]]:
        first, second = _labeled(control[0], "Control"), _labeled(test[0], "Test")
        try:
            table = compare(
                first.side(*control[1:]),
                second.side(*test[1:]),
                include_last_profiler_step=True,
                only_side=SIDES[device_type],
                by_short_name=use_short_name,
                by_category=False,
                by_step_number=by_step_number,
            ).df()
        finally:
            for given, opened in ((control[0], first), (test[0], second)):
                if opened is not given:
                    opened.close()
        labels = first.label, second.label
        if labels[0] == labels[1]:
            labels = labels[0], f"{labels[1]}_test"
            log.warning("Both traces are labeled %r; the test trace is relabeled %r.", *labels)
        table = table.sort_values("name", ignore_index=True)
        columns: dict[str, Any] = {"short_name" if use_short_name else "name": table["name"]}
        for label, side in zip(labels, ("control", "test"), strict=True):
            columns[f"{label}_counts"] = table[f"{side}_count"]
            columns[f"{label}_total_duration"] = table[f"{side}_sum_ns"] / NS
        columns["diff_counts"] = table["diff_count"]
        columns["diff_duration"] = table["diff_sum_ns"] / NS
        columns["counts_change_categories"] = table["count_change"].map(_SIGNS)
        frame = pd.DataFrame(columns)
        return frame.set_index(frame.columns[0]), table["count_change"].to_numpy()  # type: ignore[return-value]  # texts

    @classmethod
    def visualize_counts_diff(
        cls,
        df: pd.DataFrame,
        show_image: bool = True,
        export_image_path: str | os.PathLike[str] | None = None,
    ) -> None:
        """Draw the counts of the operations whose counts differ most.

        Args:
            df: Frame that :meth:`compare_traces` returned.
            show_image: Whether to show the chart; only possible in a notebook.
            export_image_path: ``.html``, ``.png``, ``.svg`` or ``.json`` file to write the chart
                to.

        Raises:
            ParameterError: ``df`` was not returned by :meth:`compare_traces`, or the file type is
                not supported.
        """
        _visualize(df, "counts", "Operations", show_image=show_image, path=export_image_path)

    @classmethod
    def visualize_duration_diff(
        cls,
        df: pd.DataFrame,
        show_image: bool = True,
        export_image_path: str | os.PathLike[str] | None = None,
    ) -> None:
        """Draw the durations of the operations whose durations differ most.

        See :meth:`visualize_counts_diff` for the arguments.
        """
        axis = "Total duration [µs]"
        _visualize(df, "total_duration", axis, show_image=show_image, path=export_image_path)


def _visualize(
    df: pd.DataFrame,
    what: str,
    axis: str,
    *,
    show_image: bool,
    path: str | os.PathLike[str] | None,
) -> None:
    labels = [
        str(column).removesuffix("_total_duration")
        for column in df.columns
        if str(column).endswith("_total_duration")
    ]
    difference = "diff_counts" if what == "counts" else "diff_duration"
    if len(labels) != len(("control", "test")) or difference not in df:
        raise ParameterError("df must be a frame that compare_traces returned.")
    if not (path or (show_image and in_notebook())):
        log.info(
            "The chart is not shown outside of a notebook; pass export_image_path to save it to a file."
        )
        return
    from hta_sql.charts import save, side_by_side  # noqa: PLC0415 - altair is needed for charts only

    table = df[[f"{label}_{what}" for label in labels] + [difference]].reset_index()
    table.columns = pd.Index([table.columns[0], *labels, "difference"])
    title = f"What changed: {'counts' if what == 'counts' else 'durations'}"
    chart = side_by_side(table, title, axis, format_="," if what == "counts" else ",.3f")
    if path:
        save(chart, Path(path), title)
    if show_image and in_notebook():
        display(chart)


def _labeled(trace: Given, label: str) -> LabeledTrace:
    if isinstance(trace, LabeledTrace):
        return trace
    if isinstance(trace, Job | Trace):
        return LabeledTrace(label, t=trace)
    if isinstance(trace, str | os.PathLike):
        return LabeledTrace(label, trace_dir=trace)
    raise ParameterError(f"{trace!r} is not a LabeledTrace, TraceAnalysis, Trace or folder.")
