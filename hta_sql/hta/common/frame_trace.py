"""A frame of events as a trace of its own, so that SQL can say what it says of traces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from hta_sql.errors import ParameterError, RankError
from hta_sql.hta.common.trace_filter import text_columns
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable, decode_symbol_id_to_symbol_name
from hta_sql.hta.frames.breakdown_frames import NS
from hta_sql.hta.methods.job import Job

__all__ = ["FrameTrace"]

_ARGS = {
    "stream": "stream",
    "correlation": "correlation",
    "external_id": "External id",
    "python_id": "Python id",
    "python_parent_id": "Python parent id",
}
"""Columns that the call tree goes by ─▶ arguments in a trace; -1 is none."""
_NEEDED = ("ts", "dur", "pid", "tid")
_EVENT_IDS = ("event_id", "parent_id")
_TIMES = ("ts", "first_kernel_ts", "last_kernel_end_ts")


class FrameTrace:
    """Events of one rank that are in a frame, with the calls of a trace that a CallGraph makes.

    The events are written as a trace and read into a store, both of which are removed at once.

    Args:
        df: Frame with ``ts, dur`` (µs), ``pid, tid, name, cat``; ``stream, correlation,
            external_id, python_id, python_parent_id`` say more. ``index``, else the frame's index,
            tells events apart.
        symbol_table: What numbers in ``name`` and ``cat`` stand for.
        rank: Rank that the events are taken for.

    Attributes:
        symbol_table: What the numbers in ``name`` and ``cat`` stand for.

    Raises:
        ParameterError: A column is missing, or names are numbers without a symbol table.
    """

    def __init__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None, rank: int) -> None:
        if missing := set(_NEEDED) - set(df.columns):
            raise ParameterError(f"The frame has no {', '.join(sorted(missing))}.")
        frame = df.copy()
        if "index" not in frame:
            frame["index"] = frame.index
        self._frame = frame.set_index("index", drop=False).rename_axis(None)
        self._rank = rank
        self._ordered = self._frame.sort_index(kind="stable")
        self._zero = round(float(self._frame["ts"].min()) * NS) if len(df) else 0
        texts = _texts(self._ordered, symbol_table)
        self.symbol_table = symbol_table or TraceSymbolTable(sorted({*texts[0], *texts[1]}))
        with TemporaryDirectory(prefix="hta_sql-frame-") as folder:
            path = Path(folder) / "frame.json"
            with path.open("w", encoding="utf-8") as file:
                file.write('{"traceEvents": [\n')
                for number, event in enumerate(_events(self._ordered, *texts)):
                    file.write(f",\n{event}" if number else event)
                file.write("\n]}\n")
            with Job(
                {0: str(path)}, include_last_profiler_step=True, store=f"{folder}/store"
            ) as job:
                self._tables = {
                    name: job.result(name, [0]).df()
                    for name in ("call_stack", "call_stack_threads")
                }

    def get_ranks(self) -> list[int]:
        """List the one rank."""
        return [self._rank]

    def get_trace(self, rank: int) -> pd.DataFrame:
        """Return the frame, always the same one.

        Raises:
            RankError: Another rank.
        """
        if rank != self._rank:
            raise RankError(f"No rank {rank} in this frame; it is of rank {self._rank}.")
        return self._frame

    def decode_symbol_ids(self, use_shorten_name: bool = True) -> None:
        """Add ``s_name`` and ``s_cat`` to the frame, where names are numbers.

        Args:
            use_shorten_name: Leave out template and call arguments, and return types.
        """
        decode_symbol_id_to_symbol_name(self._frame, self.symbol_table, use_shorten_name)

    def run(self, name: str, rank: int) -> pd.DataFrame:
        """Return ``call_stack`` or ``call_stack_threads`` of the frame, with its numbers of events."""
        self.get_trace(rank)
        table = self._tables[name].copy()
        # The store counts from its first event, the frame from wherever it counts from.
        for column in _TIMES:
            if column in table:
                table[column] += self._zero
        known = dict(enumerate(self._ordered["index"].tolist()))
        for column in _EVENT_IDS:
            if column in table:
                table[column] = table[column].map(known)
        return table


def _texts(df: pd.DataFrame, symbols: TraceSymbolTable | None) -> list[list[str]]:
    """Return names and categories as texts."""
    found = []
    for column, text in zip(("name", "cat"), text_columns(df), strict=True):
        if symbols is not None and text != column and column in df:
            known = dict(enumerate(symbols.sym_table))
            found.append([known.get(number, "") for number in df[column].tolist()])
        elif text:
            found.append(df[text].tolist())
        else:
            raise ParameterError(f"The frame has no {column} as text: give the symbol table.")
    return found


def _events(df: pd.DataFrame, names: list[str], categories: list[str]) -> Iterator[str]:
    columns: dict[str, list[Any]] = {c: df[c].tolist() for c in (*_NEEDED, *_ARGS) if c in df}
    for at, (name, category) in enumerate(zip(names, categories, strict=True)):
        row = {column: values[at] for column, values in columns.items()}
        args = {key: int(row[c]) for c, key in _ARGS.items() if c in row and row[c] >= 0}
        event = {
            "ph": "X",
            "cat": category,
            "name": name,
            **{key: row[key] for key in _NEEDED},
            "args": args,
        }
        yield json.dumps(event)
