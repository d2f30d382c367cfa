"""What a new user asks, each question a link to its answer: one click from the first screen."""

from __future__ import annotations

import html
from collections.abc import Mapping

from hta_sql.report.sections import shortly

QUESTIONS = {
    "Where does a step go?": "step_accounting",
    "Why is my GPU idle?": "idle_causes",
    "Where does the host wait for the GPU?": "synchronisations",
    "Which operator costs most?": "operator_table",
    "With which shapes?": "operator_unique_args",
    "From which line?": "source_lines",
    "Which kernels are launched by whom?": "launching_operators",
    "Are the tensor cores used?": "gpu_summary",
    "How far from the device's limit?": "roofline",
    "Where is the memory peak?": "memory_peaks",
    "Who allocated what is in use there?": "live_at_peak",
    "Which rank is late, and why?": "stragglers",
    "Does it wait or transfer?": "step_accounting",
    "What should I do next?": "advice",
}
"""Question, as on the page of questions in the documentation ─▶ the section that answers it."""

NEEDS = {"Does it wait or transfer?": "collective_waits"}
"""Question ─▶ the section without which that of its answer has nothing to say about it."""


def questions_markup(sections: set[str], reasons: Mapping[str, str]) -> str:
    """List the questions; of one without an answer, say what it needs.

    Args:
        sections: What has a section on the page.
        reasons: Analysis ─▶ why it has none.
    """
    items = []
    for question, answer in QUESTIONS.items():
        words = html.escape(question)
        needed = NEEDS.get(question, answer)
        if {answer, needed} <= sections or answer == "advice":
            items.append(f'<li><a href="#{answer}">{words}</a></li>')
        else:
            why = html.escape(shortly(reasons.get(needed if answer in sections else answer, "")))
            items.append(f'<li>{words} <a class="why" href="#not-shown">{why}</a></li>')
    return f'<h3>Questions</h3><ul class="questions">{"".join(items)}</ul>'
