"""Reasons why an analysis has no section: no rows, not run, or missing data in the traces."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hta_sql.library.objects import SqlObject
from hta_sql.report.contents import Section
from hta_sql.report.headings import column_words
from hta_sql.results.result import Result
from hta_sql.results.without_device import NO_DEVICE, lacks_device

_NOTHING = "Nothing to show for these traces. "

_COUNTS = {
    "GPU activity": "gpu_op_count",
    "runtime calls": "linked_pct",
    "operators": "cpu_op_count",
    "host operators": "cpu_op_count",
    "memory events (profile_memory=True)": "memory_event_count",
}
"""Need of an analysis ─▶ column of ``rank_health`` that counts it."""

_DEFAULT = re.compile(r"\b([a-z]+(?:_[a-z]+)+)((?: [\w ]+)?) \(([^()]+) by default\)")
"""Matches a parameter in the fact Needs, followed by what it counts and its default."""


def not_run(section: Section, values: Mapping[str, Any], runs: int, ranks: int) -> str:
    """Return why an analysis is not run, or an empty string if it is run.

    Args:
        section: Section of the analysis.
        values: Parameters of the analysis.
        runs: Number of runs in the scope.
        ranks: Number of ranks in the scope.
    """
    analysis = section.analysis
    if section.max_ranks is not None and ranks > section.max_ranks:
        return f"Omitted: {ranks:,} ranks are too many for a page."
    lacking = [p.name for p in analysis.parameters if p.default is None and p.name not in values]
    if lacking:
        return f"Needs {_names_of(lacking)}: {_command(analysis, lacking)}"
    if runs == 1 and analysis.facts.get("Needs", "").startswith("two runs"):
        return no_rows(analysis)
    if (section.compares == "runs" and runs == 1) or (section.compares == "ranks" and ranks == 1):
        return f"Compares {section.compares}; there is only one {section.compares[:-1]} here."
    return ""


def no_rows(analysis: SqlObject, health: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return why a result is empty: nothing was found, or the traces lack required data.

    Args:
        analysis: The analysis.
        health: Rows of ``rank_health``, which count the content of the traces.
    """
    if lacks_device(analysis, health):
        return NO_DEVICE
    needs = analysis.facts.get("Needs", "nothing")
    first, _, rest = needs.partition("; ")
    if first.startswith("nothing"):
        return f"{_NOTHING}{rest[:1].upper()}{rest[1:]}." if rest else "Nothing to report."
    counts = [_COUNTS.get(part) for part in re.split(", | and ", first)]
    if all(count and any(row[count] for row in health) for count in counts):
        return f"None found, although the traces have {first}."
    parameters = [name for name, *_ in _DEFAULT.findall(needs)]
    needs = _DEFAULT.sub(r"\3\2", needs)
    other = f" To select another: {_command(analysis, parameters)}" if parameters else ""
    return f"{_NOTHING}Needs: {needs}.{other}"


def failed(analysis: SqlObject, error: Exception) -> str:
    """Return what the page shows in place of an analysis that the engine failed to compute."""
    name = analysis.base_name
    return (
        f"{name} could not be computed: {str(error).strip()} To see whether files are damaged: "
        f"hta-sql verify STORE. To run only this analysis: hta-sql run STORE {name}."
    )


def nothing_known(section: Section, result: Result) -> str:
    """Return the section's sentence if its needed column is NULL in every row, otherwise ""."""
    column, sentence = section.needed
    return sentence if column and result.arrow().column(column).null_count == len(result) else ""


def shortly(reason: str) -> str:
    """Remove the common prefix of the reasons for empty results."""
    return reason.removeprefix(_NOTHING)


def _names_of(parameters: list[str]) -> str:
    """Describe parameters in words, such as "a pattern and an operator name"."""
    words = [column_words(name, None).lower() for name in parameters]
    return " and ".join(f"{'an' if word[0] in 'aeiou' else 'a'} {word}" for word in words)


def _command(analysis: SqlObject, parameters: list[str]) -> str:
    """Return the command that runs an analysis, with placeholders for some parameters."""
    options = " ".join(f"--{name.replace('_', '-')} …" for name in parameters)
    return f"hta-sql run STORE {analysis.base_name} {options}"
