"""Return the kernels that operators launch, and the annotations that kernels ran under."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pandas as pd

from hta_sql.errors import ParameterError
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.common.trace_symbol_table import decode_symbol_id_to_symbol_name
from hta_sql.hta.frames import operator_frames as frames
from hta_sql.hta.methods.job import Job
from hta_sql.hta.methods.showing import show

log = logging.getLogger(__name__)


class Operators(Job):
    """Methods of TraceAnalysis: kernel sequences, operators with their kernels, annotations."""

    def get_frequent_cuda_kernel_sequences(  # noqa: PLR0917 - HTA's signature
        self,
        operator_name: str,
        output_dir: str | os.PathLike[str] | None,
        min_pattern_len: int = 3,
        rank: int = 0,
        top_k: int = 5,
        visualize: bool | None = False,
        compress_other_kernels: bool = True,
    ) -> pd.DataFrame:
        """Return the kernel sequences that calls of an operator launch, most frequent first.

        Also writes a trace ``overlaid_<trace>.json.gz`` to ``output_dir``. In this trace, every
        event of the ``top_k`` sequences has the argument ``Patterns``, which can be searched for in
        Perfetto or Chrome.

        Args:
            operator_name: Part of the name of the operator, annotation or call. Only its outermost
                calls on each thread count.
            output_dir: Folder for the trace; None writes no trace.
            min_pattern_len: Minimum length of a sequence.
            rank: Rank to analyze.
            top_k: Number of sequences to mark in the trace and show in the chart.
            visualize: Whether to show the chart; None: in a notebook only.
            compress_other_kernels: Replace the names of all other events with numbers and drop
                their arguments. The arguments of the span "PyTorch Profiler" map the numbers to
                names.

        Returns:
            ``pattern (operator|kernel|…), count, GPU kernel duration (us), CPU op duration (us)``,
            sorted by count and pattern. Without such a sequence, the frame is empty and no trace is
            written.

        Raises:
            ParameterError: The operator name is empty, or ``output_dir`` is not a folder.
            RankError: The rank does not exist.
            TraceError: The trace has changed since the ingest, or the folder is not writable.
            TraceNotFoundError: The trace no longer exists.
        """
        if not operator_name:
            raise ParameterError(
                "operator_name is empty. Pass part of a name, such as 'aten::linear'."
            )
        if output_dir is not None and not Path(output_dir).is_dir():
            raise ParameterError(
                f"output_dir {os.fspath(output_dir)!r} is not a folder. Create it, or pass None to "
                "write no trace."
            )
        wanted = self._default_ranks([rank])
        about = {"operator_name": operator_name, "min_pattern_len": min_pattern_len}
        result = self.result("frequent_kernel_sequences_v1", wanted, **about)
        frame = frames.sequences(result.df())
        if frame.empty:
            log.warning(
                "No event with %r in its name launched %d or more kernels and copies "
                "(min_pattern_len) on rank %d; no trace was written.",
                operator_name,
                min_pattern_len,
                rank,
            )
            return frame
        if output_dir is not None:
            from hta_sql.overlay.sequences import overlay_sequences  # noqa: PLC0415 - imported only when needed

            written = overlay_sequences(
                self.store,
                self.result("kernel_sequence_events_v1", wanted, top_k=top_k, **about).df(),
                {
                    place: {pattern: count}
                    for place, (pattern, count) in enumerate(
                        frame[["pattern", "count"]].head(top_k).itertuples(index=False), start=1
                    )
                },
                run=self.run,
                rank=rank,
                folder=output_dir,
                compress=compress_other_kernels,
            )
            log.info("Marked the frequent sequences of rank %d: %s.", rank, written.path)
        show(result, visualize, self.store.path, top=top_k)
        return frame

    get_frequent_cuda_kernel_patterns = get_frequent_cuda_kernel_sequences  # as in HTA's README

    def get_aten_op_kernels_and_delay(
        self,
        ranks: list[int] | None = None,
        sort_by: list[str] | None = None,
    ) -> dict[int, pd.DataFrame]:
        """Return the kernel sequences of each aten operator and the delays before the first kernel.

        A launch belongs to the nearest aten operator around it on its own thread.

        Args:
            ranks: Ranks to analyze; default: rank 0, or the first rank if 0 does not exist.
            sort_by: Columns to sort by, largest first; default: ``occurrence_count``.

        Returns:
            ``{rank: frame}`` with ``aten_op_name, kernel_sequence ("k1 -> k2"), occurrence_count,
            avg_aten_op_launch_delay, avg_runtime_delay``. The delays are means: from the start of
            the operator to its first launch, and from there to the start of the kernel (µs, three
            decimals).

        Raises:
            RankError: A rank does not exist.
            ParameterError: A column does not exist.
        """
        wanted = self._default_ranks(ranks)
        keys = sort_by or ["occurrence_count"]
        unknown = sorted(set(keys) - set(frames.ATEN_COLUMNS))
        if unknown:
            raise ParameterError(
                f"sort_by contains {unknown[0]!r}; the columns are: "
                f"{', '.join(frames.ATEN_COLUMNS)}."
            )
        result = self._result("aten_op_kernels_and_delay_v1", wanted)
        show(result, None, self.store.path)
        return frames.aten_ops(result.df(), wanted, keys)

    def get_gpu_user_annotation_breakdown(  # noqa: PLR0917 - HTA's signature
        self,
        use_gpu_annotation: bool = True,
        visualize: bool | None = None,
        duration_ratio: float = 0.8,
        num_kernels: int | None = 1000,
        allowlist_patterns: list[str] | None = None,
        image_renderer: str | None = None,
    ) -> pd.DataFrame | None:
        """Return the duration of each user annotation, on the GPU or on the host.

        Args:
            use_gpu_annotation: Use the copies of annotations on the GPU; otherwise those on the
                host.
            visualize: Whether to show the chart; None: in a notebook only.
            duration_ratio: Share of a rank's total that annotations with their own row must cover;
                used if ``num_kernels`` is None.
            num_kernels: Number of annotations per rank with their own row. All other annotations
                are combined in the row ``others``, whose statistics cover their ranges.
            allowlist_patterns: Annotations that are never part of ``others``: substrings of names,
                or regular expressions.
            image_renderer: ``png`` or ``svg`` for images; otherwise the notebook's renderer is
                used.

        Returns:
            ``name, sum (us), max (us), min (us), stddev, mean (us), rank``, sorted by rank and
            name; None if there are no such annotations.
        """
        result = self.result(
            "user_annotation_breakdown_v1",
            self._ranks,
            use_gpu_annotation=use_gpu_annotation,
            num_annotations=num_kernels,
            duration_ratio=duration_ratio if num_kernels is None else None,
            keep_patterns=allowlist_patterns,
        )
        table = result.df()
        if table.empty:
            log.warning(
                "The traces have no user annotations on the %s.",
                "GPU" if use_gpu_annotation else "host",
            )
            return None
        show(result, visualize, self.store.path, image_renderer)
        return frames.annotation_times(table)

    def get_gpu_kernels_with_user_annotations(
        self, rank: int, expand_names: bool = True, shorten_names: bool = True
    ) -> pd.DataFrame | None:
        """Return each kernel, copy and memset with the user annotation that it belongs to.

        That is the innermost annotation around the launch or, if the launch is in none, the one
        around the op on its own stream.

        Args:
            rank: Rank to analyze.
            expand_names: Whether to add ``s_name, s_cat, s_user_annotation``.
            shorten_names: Drop template arguments, parameters and return types in ``s_name``.

        Returns:
            The rows of ``t.get_trace(rank)`` for these ops, sorted by start, with
            ``user_annotation`` (an id in ``t.symbol_table``; -1: none) and ``annotation_path`` (all
            enclosing annotations). ``s_name, s_cat, s_user_annotation`` contain the names as
            strings. None if nothing is annotated.

        Raises:
            RankError: The rank does not exist.
        """
        table = self.result(
            "gpu_kernels_with_user_annotations_v1", self._default_ranks([rank])
        ).df()
        if not table["annotation"].notna().any():
            log.warning("No GPU activity of rank %d has a user annotation.", rank)
            return None
        trace = Trace(job=self)
        events = trace.events(rank, table["event_id"])
        frame = frames.annotated_kernels(events, table, trace.symbol_table)
        if expand_names:
            decode_symbol_id_to_symbol_name(frame, trace.symbol_table, shorten_names)
        return frame
