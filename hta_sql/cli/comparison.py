"""Formats a comparison for a terminal or a pull request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from textwrap import wrap
from typing import Any

from hta_sql.comparison.changes import Comparison, side_name
from hta_sql.comparison.headline import PARTS, has_too_few_steps, signed_time
from hta_sql.text import CUT, counted, cut_column, cut_middle, printable, time_text

CHANGES = 15
"""Maximum number of changes in text output; JSON has all of them."""

UNSURE = 5
"""Number of lines up to which insignificant changes are added to the significant ones."""

UNSURE_SHARE = 0.01
"""Minimum difference of an insignificant change to be listed, as a share of the step."""

_PART_OF = "part of a"
"""Start of the heading of the table of parts."""

_NAME = 48

_SHORT_NAME = 24
"""Width down to which a name is cut; below it, whole columns are omitted instead."""

_RUN_NAME = 12
"""Width to which run names are cut on a narrow terminal; the first line has the full names."""

_OMITTED = ("kernel", "times", "noise")
"""Columns that are omitted on a narrow terminal, in this order; JSON has all columns."""


def text_lines(comparison: Comparison, width: int) -> Iterator[str]:
    """Yield the lines of a comparison for a terminal: comparability, headline, parts, changes.

    Args:
        comparison: The comparison.
        width: Width of the terminal [characters].
    """
    yield _title(comparison)
    for reason in comparison.reasons:
        yield from wrap(printable(reason), width, initial_indent="  ", subsequent_indent="  ")
    yield ""
    for sentence in (printable(comparison.message), *_notes(comparison)):
        yield from wrap(sentence, width)
    yield ""
    yield from _aligned(_part_rows(comparison), width)
    if comparison.changes:
        yield ""
        yield from _aligned(
            _change_rows("what changed", comparison.changes[:CHANGES], comparison.step), width
        )
        yield from _rest(comparison)
    if unsure := _unsure(comparison):
        yield ""
        yield from _aligned(_change_rows("not significant", unsure, comparison.step), width)
    if comparison.predictions:
        yield ""
        yield from aligned(_prediction_rows(comparison), {1, 2, 3, 4})


def markdown_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the lines of a comparison for a pull request."""
    yield f"### {in_markdown(_title(comparison))}"
    yield ""
    yield in_markdown(comparison.message)
    for reason in (*comparison.reasons, *_notes(comparison)):
        yield f"- {in_markdown(reason)}"
    changes = _change_rows("what changed", comparison.changes[:CHANGES], comparison.step)
    for rows in (_part_rows(comparison), changes, _prediction_rows(comparison)):
        if len(rows) > 1:
            yield ""
            yield piped(rows[0])
            yield piped("---" for _ in rows[0])
            yield from map(piped, rows[1:])
    yield from _rest(comparison)


def _title(comparison: Comparison) -> str:
    sides = [side_name(side) for side in comparison.sides]
    return printable(f"{sides[0]} ▸ {sides[1]}: {comparison.level}")


def _notes(comparison: Comparison) -> list[str]:
    step = comparison.step
    notes = []
    if step["control_step_count"] != step["test_step_count"]:
        notes.append(
            f"The control has {counted(step['control_step_count'], 'step')}, the test "
            f"{step['test_step_count']}; times are means per step and rank."
        )
    lag = next((row for row in comparison.of_level("part") if row["part"] == "lag"), None)
    if lag and min(lag["control_ns"], lag["test_ns"]) < 0:
        notes.append(
            f"“{PARTS['lag']}” is negative: the device falls further behind its host during a step, so its "
            "work lasts longer than the step on the host, to which the parts sum."
        )
    return notes


def _part_rows(comparison: Comparison) -> list[list[str]]:
    unit = comparison.unit
    rows = [[f"{_PART_OF} {unit}", *comparison.names, "difference", "noise", ""]]
    for row in (*comparison.of_level("part"), comparison.step):
        name = PARTS[row["part"]] if row["part"] else unit
        rows.append([name, *_times(row, comparison.step), row["verdict"]])
    return rows


def _prediction_rows(comparison: Comparison) -> list[list[str]]:
    """Return the predicted step time of each scenario, next to the measured step time."""
    rows = [["prediction", "predicted", "interval", "measured", "difference", ""]]
    for row in comparison.predictions:
        low, high = (time_text(row[f"predicted_{end}_ns"]) for end in ("low", "high"))
        difference = signed_time(row["diff_ns"]) if row["diff_ns"] else "0"
        times = [time_text(row["predicted_step_ns"]), f"{low} … {high}"]
        times += [time_text(row["measured_step_ns"]), difference]
        rows.append([row["scenario"], *times, row["verdict"]])
    return rows


def _unsure(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the largest insignificant differences, if there are few significant ones."""
    least = UNSURE_SHARE * comparison.step["control_ns"]
    rows = [
        row
        for row in comparison.of_level("row")
        if row["verdict"] in ("within noise", "unknown") and abs(row["diff_ns"]) >= least
    ]
    return rows[: max(0, UNSURE - len(comparison.changes))]


def _change_rows(head: str, chosen: list[dict[str, Any]], step: dict[str, Any]) -> list[list[str]]:
    rows = [[head, "part", "difference", "noise", "times", "", "kernel"]]
    for row in chosen:
        difference, noise = _times(row, step)[2:]
        rows.append(
            [
                cut_middle(printable(row["subject"]), _NAME),
                row["part"],
                difference,
                noise,
                _counts(row),
                _verdict(row),
                _kernels(row),
            ]
        )
    return rows


def _times(row: dict[str, Any], step: dict[str, Any]) -> list[str]:
    noise = "?" if row["noise_ns"] is None else f"± {time_text(row['noise_ns'])}"
    if has_too_few_steps(row["noise_ns"], step):
        noise = "too few steps"
    times = [time_text(row["control_ns"]), time_text(row["test_ns"])]
    return [*times, signed_time(row["diff_ns"]) if row["diff_ns"] else "0", noise]


def _counts(row: dict[str, Any]) -> str:
    if not row["control_count"] and not row["test_count"]:
        return ""
    counts = [f"{row[side]:,.4g}" for side in ("control_count", "test_count")]
    return counts[0] if counts[0] == counts[1] else f"{counts[0]} ▸ {counts[1]}"


def _verdict(row: dict[str, Any]) -> str:
    """Return the verdict of a row, and how the row was paired if the pairing is uncertain."""
    match = row["weakest_match"]
    sure = match in (None, "operator, shapes and kernel")
    return row["verdict"] if sure else f"{row['verdict']} (paired by {match})"


def _kernels(row: dict[str, Any]) -> str:
    names = [row["control_kernel"], row["test_kernel"]]
    if names[0] == names[1] or None in names:
        known = next((name for name in names if name), "")
        return cut_middle(printable(known), _NAME)
    return " ▸ ".join(cut_middle(printable(name), _NAME // 2) for name in names)


def _rest(comparison: Comparison) -> Iterator[str]:
    more = len(comparison.changes) - CHANGES
    if more > 0:
        yield f"{CUT} and {counted(more, 'smaller change')}: --format json has all."


def _aligned(rows: list[list[str]], width: int) -> Iterator[str]:
    rows = _fitted(rows, width)
    heads = enumerate(rows[0])
    return aligned(rows, {column for column, head in heads if _is_time(head, rows, column)})


def _fitted(rows: list[list[str]], width: int) -> list[list[str]]:
    """Cut names and omit columns until the rows fit the width, as far as possible."""
    if rows[0][0].startswith(_PART_OF):
        room = min(_SHORT_NAME, max(_RUN_NAME, width // 2 - 28))
        rows = [[rows[0][0], *cut_column(rows[0][1:3], room), *rows[0][3:]], *rows[1:]]
    for omitted in _OMITTED:
        if _width([row[1:] for row in rows]) + 2 + _SHORT_NAME <= width:
            break
        if omitted in rows[0]:
            at = rows[0].index(omitted)
            rows = [row[:at] + row[at + 1 :] for row in rows]
    room = max(_SHORT_NAME, width - 2 - _width([row[1:] for row in rows]))
    names = cut_column([row[0] for row in rows], room)
    return [[name, *row[1:]] for name, row in zip(names, rows, strict=True)]


def _width(rows: list[list[str]]) -> int:
    return sum(width + 2 for width in _widths(rows)) - 2


def _widths(rows: list[list[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def aligned(rows: list[list[str]], numeric: Collection[int]) -> Iterator[str]:
    """Yield rows in aligned columns; numbers are right-aligned."""
    widths = _widths(rows)
    for row in rows:
        cells = (
            cell.rjust(widths[i]) if i in numeric else cell.ljust(widths[i])
            for i, cell in enumerate(row)
        )
        yield "  ".join(cells).rstrip()


def _is_time(head: str, rows: list[list[str]], column: int) -> bool:
    return head in ("difference", "noise") or (rows[0][0].startswith(_PART_OF) and column in (1, 2))


def piped(cells: Iterable[str]) -> str:
    """Format a table row in Markdown."""
    return f"| {' | '.join(in_markdown(cell) for cell in cells)} |"


def in_markdown(text: str) -> str:
    """Escape Markdown syntax."""
    escaped = printable(text).replace("\\", "\\\\")
    for character in "|<>_*`[]":
        escaped = escaped.replace(character, f"\\{character}")
    return escaped
