"""Formats the result of a gate for a terminal, a pull request, programs and CI systems."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from xml.etree import ElementTree as ET

from hta_sql.cli.comparison import aligned, in_markdown, piped
from hta_sql.comparison.gate import Judged, Outcome, Verdict
from hta_sql.comparison.gate.verdicts import FAILED, INCONCLUSIVE, PASSED, SKIPPED, key_text
from hta_sql.comparison.gate.words import difference_text, number_text
from hta_sql.text import CUT, counted, cut_middle, printable

VALUES = 5
"""Maximum number of values per rule in text output; JSON has all of them."""

_HEADS = ["", "rule", "baseline", "candidate", "change", "noise", "limits"]
_NUMBERS = (2, 3, 4, 5)
_NAME = 60


def text_of(outcome: Outcome) -> str:
    """Format the result for a terminal."""
    return "\n".join(_text_lines(outcome)) + "\n"


def markdown_of(outcome: Outcome) -> str:
    """Format the result for a pull request."""
    return "\n".join(_markdown_lines(outcome)) + "\n"


def json_of(outcome: Outcome) -> str:
    """Format the complete result as JSON."""
    return json.dumps(outcome.as_json(), indent=2, ensure_ascii=False) + "\n"


def junit_of(outcome: Outcome) -> str:
    """Format the result as JUnit XML: one test case per rule, and one for comparability.

    An inconclusive verdict is a JUnit error.
    """
    suite = ET.Element("testsuite", name="hta-sql gate")
    _case(suite, "comparability", outcome.comparability, "; ".join(outcome.reasons), [])
    for verdict in outcome.verdicts:
        rows = [_value_text(verdict, row) for row in _shown_rows(verdict)]
        _case(suite, verdict.rule.name, verdict.verdict, verdict.message, rows)
    counts = {"failures": FAILED, "errors": INCONCLUSIVE, "skipped": SKIPPED}
    found = [outcome.comparability, *(verdict.verdict for verdict in outcome.verdicts)]
    suite.set("tests", str(len(found)))
    for name, kind in counts.items():
        suite.set(name, str(found.count(kind)))
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode") + "\n"


FORMATS: dict[str, Callable[[Outcome], str]] = {
    "text": text_of,
    "json": json_of,
    "junit": junit_of,
    "markdown": markdown_of,
}


def _case(suite: ET.Element, name: str, verdict: str, message: str, rows: list[str]) -> None:
    case = ET.SubElement(suite, "testcase", classname="hta-sql gate", name=printable(name))
    kind = {FAILED: "failure", INCONCLUSIVE: "error", SKIPPED: "skipped"}.get(verdict)
    if kind:
        element = ET.SubElement(case, kind, message=printable(message))
        if kind != "skipped":
            element.set("type", verdict)
        element.text = "\n".join(map(printable, rows)) or None


def _text_lines(outcome: Outcome) -> Iterator[str]:
    yield _title(outcome)
    yield from (f"  {printable(reason)}" for reason in outcome.reasons)
    if outcome.headline:
        yield printable(outcome.headline)
    yield ""
    yield from aligned([_HEADS, *map(_row, outcome.verdicts)], _NUMBERS)
    for verdict in _shown_verdicts(outcome):
        yield ""
        rows = _shown_rows(verdict) if len(verdict.rows) > 1 else []
        explanation = verdict.notes if rows else verdict.message
        yield printable(f"{verdict.verdict}: {verdict.rule.name}: {explanation}")
        if rows:
            yield from (printable(f"  {_value_text(verdict, row)}") for row in rows[:VALUES])
            if len(rows) > VALUES:
                yield f"  {CUT} and {len(rows) - VALUES} more: --format json has all."
    yield ""
    yield _summary(outcome)


def _markdown_lines(outcome: Outcome) -> Iterator[str]:
    yield f"### {in_markdown(_summary(outcome))}"
    yield ""
    yield in_markdown(_title(outcome))
    if outcome.headline:
        yield ""
        yield in_markdown(outcome.headline)
    if outcome.reasons:
        yield ""
        yield from (f"- {in_markdown(reason)}" for reason in outcome.reasons)
    yield ""
    yield piped(_HEADS)
    yield piped("---" for _ in _HEADS)
    yield from map(piped, map(_row, outcome.verdicts))
    shown = list(_shown_verdicts(outcome))
    if shown:
        yield ""
    for verdict in shown:
        yield f"- **{verdict.verdict}** {in_markdown(f'{verdict.rule.name}: {verdict.message}')}"


def _title(outcome: Outcome) -> str:
    runs = ", ".join(side.run for side in outcome.baselines)
    allowed = ""
    if outcome.level == "not comparable":
        allowed = ", which is allowed" if outcome.is_allowed else ", which is not allowed"
    return printable(f"{runs} ▸ {outcome.candidate.run}: {outcome.level}{allowed}")


def _summary(outcome: Outcome) -> str:
    counts = [verdict.verdict for verdict in outcome.verdicts]
    parts = [
        f"{counts.count(verdict)} {verdict}"
        for verdict in (FAILED, INCONCLUSIVE, PASSED, SKIPPED)
        if verdict in counts
    ]
    why = "; the runs cannot be compared" if outcome.comparability == FAILED else ""
    return f"Gate {outcome.verdict}: {counted(len(counts), 'rule')}, {', '.join(parts)}{why}."


def _shown_verdicts(outcome: Outcome) -> list[Verdict]:
    return [verdict for verdict in outcome.verdicts if verdict.message]


def _shown_rows(verdict: Verdict) -> list[Judged]:
    return [row for row in verdict.rows if row.reason and row.verdict != SKIPPED]


def _row(verdict: Verdict) -> list[str]:
    row, unit = verdict.first, verdict.rule.unit
    name = printable(cut_middle(verdict.rule.name, _NAME))
    count = f" ({len(verdict.rows)} values)" if len(verdict.rows) > 1 else ""
    values = [
        "" if value is None else number_text(value, unit) for value in (row.baseline, row.candidate)
    ]
    noise = "" if row.noise is None else f"± {number_text(row.noise, unit)}"
    return [
        verdict.verdict,
        f"{name}{count}",
        *values,
        difference_text(row.difference, row.difference_pct, unit),
        noise,
        verdict.limits,
    ]


def _value_text(verdict: Verdict, row: Judged) -> str:
    named = f"{key_text(row.key)}: " if row.key else ""
    return f"{row.verdict}: {named}{row.reason or number_text(row.candidate, verdict.rule.unit)}"
