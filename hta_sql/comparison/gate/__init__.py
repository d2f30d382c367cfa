"""Gate: decides whether a run passes rules on columns of analyses, compared with a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hta_sql.comparison.changes import LEVELS, Comparison, compare_steps, fact_text
from hta_sql.comparison.gate.judging import Judge
from hta_sql.comparison.gate.limits import verdict_of_both
from hta_sql.comparison.gate.noise import Chance
from hta_sql.comparison.gate.rules import DEFAULT_RULES, OF_BOTH, Rule, Rules, read_rules
from hta_sql.comparison.gate.values import ResultCache
from hta_sql.comparison.gate.verdicts import Judged, Outcome, Verdict
from hta_sql.comparison.sides import Side
from hta_sql.errors import ParameterError, nearest

__all__ = ["DEFAULT_RULES", "Judged", "Outcome", "Rule", "Rules", "Verdict", "gate", "read_rules"]


def gate(
    baselines: Sequence[Side],
    candidate: Side,
    rules: Iterable[Rule] | None = None,
    *,
    allow: Iterable[str] = (),
    allow_not_comparable: bool = False,
) -> Outcome:
    """Evaluate rules on a run.

    Args:
        baselines: The run to compare with, or several repetitions of it, whose spread is the noise.
        candidate: The run to evaluate.
        rules: The rules; default: those of :func:`read_rules` without a file.
        allow: Facts of the analysis ``comparability`` that may differ.
        allow_not_comparable: Whether all facts may differ.

    Returns:
        The verdict of each rule, and the overall verdict.

    Raises:
        RankError: A run or rank does not exist.
        ParameterError: There is no baseline, a fact is unknown, or rows cannot be paired.
    """
    if not baselines:
        raise ParameterError("A gate needs a baseline.")
    chosen = tuple(read_rules().rules if rules is None else rules)
    compared: list[Comparison] = []
    refused: list[str] = []
    for baseline in baselines:
        try:
            compared.append(compare_steps(baseline, candidate))
        except ParameterError as error:
            refused.append(str(error))
    facts = [fact for comparison in compared for fact in comparison.differing]
    allowed = set(_known_facts(allow, compared))
    if allow_not_comparable:
        allowed |= {fact["fact"] for fact in facts}
    counting = [fact for fact in facts if fact["fact"] not in allowed]
    level = max((c.level for c in compared), key=LEVELS.index, default=LEVELS[0])
    reasons = [*refused, *dict.fromkeys(map(fact_text, facts))]
    limited = ", ".join(dict.fromkeys(fact["fact"] for fact in counting))
    judge = Judge(
        baselines, candidate, Chance(candidate.store), ResultCache(), limited or ", ".join(refused)
    )
    verdicts = [
        verdict_of_both(compared[0] if compared else None, rule)
        if rule.about.base_name == OF_BOTH
        else judge.verdict(rule)
        for rule in chosen
    ]
    is_refused = bool(refused) and not allow_not_comparable
    is_not = is_refused or any(fact["verdict"] == LEVELS[2] for fact in counting)
    return Outcome(
        baselines,
        candidate,
        LEVELS[2] if refused else level,
        reasons,
        not is_not,
        verdicts,
        compared[0].message if compared else "",
    )


def _known_facts(allow: Iterable[str], compared: Sequence[Comparison]) -> list[str]:
    known = {fact["fact"]: None for c in compared for fact in c.facts.records()}
    given = list(allow)
    for fact in given:
        if known and fact not in known:
            raise ParameterError(
                f"allow: no fact {fact!r}.{nearest(fact, known)} Available: {', '.join(known)}."
            )
    return given
