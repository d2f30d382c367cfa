"""Tests of report sections: empty ones, and which columns and rows a table shows first."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import hta_sql
from hta_sql.authoring.golden_messages import render
from hta_sql.charts.drawing.palette import ON_COLOR
from hta_sql.charts.export import spec_of
from hta_sql.charts.operators.flame_graph import folded_stacks
from hta_sql.charts.operators.work import roofline
from hta_sql.library.objects import load_library
from hta_sql.report.advice import advice_markup
from hta_sql.report.answers import Scope, answer_of, first_screen
from hta_sql.report.column_order import places
from hta_sql.report.contents import topics
from hta_sql.report.first_screen import questions_markup
from hta_sql.report.reasons import no_rows
from hta_sql.report.section import scope_of
from hta_sql.report.tables import table_markup
from hta_sql.results.display import TableRows
from hta_sql.results.without_device import NO_DEVICE
from tests.shared_stores import ingest_only

TRACES = Path(__file__).parent / "traces"
NOTHING: dict[str, float | None] = {
    "gpu_op_count": 0,
    "linked_pct": None,
    "cpu_op_count": 7,
    "memory_event_count": 0,
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest two ranks without steps, one of them late, and a run without a device."""
    folder = tmp_path_factory.mktemp("sections") / "store"
    traces = {rank: str(TRACES / f"late_{rank}.json") for rank in (0, 1)}
    ingest_only(traces, folder, run="late")
    ingest_only({0: str(TRACES / "host_only.json")}, folder, run="host")
    with hta_sql.open(folder) as opened:
        yield opened


def test_nothing_found_is_told_from_nothing_recorded() -> None:
    """A section states that nothing was found only if the events that it needs were recorded."""
    analysis = load_library().find("synchronizations")
    lacks = no_rows(analysis, [NOTHING])
    assert lacks == NO_DEVICE
    without_calls = no_rows(analysis, [NOTHING | {"gpu_op_count": 3}])
    assert "Needs: GPU activity and runtime calls; source lines" in without_calls
    assert no_rows(load_library().find("advice"), [NOTHING]) != NO_DEVICE
    there = [NOTHING, NOTHING | {"gpu_op_count": 3, "linked_pct": 100.0}]
    assert (
        no_rows(analysis, there)
        == "None found, although the traces have GPU activity and runtime calls."
    )


@pytest.mark.parametrize(
    ("name", "values", "steps", "said"),
    [
        ("operator_table", {}, 3, "Covers the whole capture except its last step."),
        ("operator_table", {}, 1, "Covers the whole capture."),
        ("operator_table", {"steps": [2]}, 3, ""),
        ("operator_table", {}, 0, ""),
        ("memory_curve", {}, 3, "Covers the whole capture."),
        ("idle_causes", {}, 3, "Covers all steps except the last."),
        ("what_if", {}, 3, ""),
    ],
)
def test_sections_say_of_which_steps_they_are(
    name: str, values: dict[str, list[int]], steps: int, said: str
) -> None:
    """A section states its scope: steps or the whole capture, with or without the last step."""
    analysis = load_library().find(name)
    assert scope_of(analysis, values, [{"step_count": steps}, {"step_count": None}]) == said


def test_what_asks_for_a_value_says_how_to_give_one() -> None:
    """A section that needs a parameter value states the value used and how to pass another."""
    said = no_rows(load_library().find("frequent_kernel_sequences"), [NOTHING])
    assert "named like aten::, each of which launches 3 or more kernels and copies" in said
    assert said.endswith(
        "To select another: hta-sql run STORE frequent_kernel_sequences --operator-name … --min-pattern-len …"
    )


def test_operators_by_shape_are_not_shown_without_shapes(store: hta_sql.TraceStore) -> None:
    """Without recorded shapes, the section on shapes states how to record them."""
    found = (s for topic in topics(store.library) for s in topic.sections)
    section = next(section for section in found if section.name == "operator_unique_args")
    given = {"runs": ["host"]}
    first = first_screen(store, given)
    answer = answer_of(store, section, Scope(given, ["host"], 1), first, lambda _relation: True)
    assert answer.result is None
    assert answer.reason == "Shapes are unknown. Record them with record_shapes=True."


def test_advice_about_a_capture_without_steps_speaks_of_the_capture(
    store: hta_sql.TraceStore,
) -> None:
    """Without steps, advice refers to the capture instead of a step."""
    scope = {"runs": ["late"]}
    cards = advice_markup(first_screen(store, scope), scope, set(), 10).partition("<details>")[0]
    assert "≤ 100 µs of the capture, 20.4 %" in cards
    message = render("advice.exposed_transfer", {"exposed_pct": 20.4, "has_steps": False})
    assert message in unescape(cards).replace("\xa0", " ")
    assert "of the steps, " not in cards
    assert " a step" not in cards


def test_columns_have_the_places_that_they_have_on_a_terminal() -> None:
    """Columns have the same priority as in a terminal: messages, numbers, then full names."""
    names = ["rank", "short_name", "name", "sum_ns", "message", "next_analysis"]
    table = pa.table({name: [1, 2] if name in {"rank", "sum_ns"} else ["a", "b"] for name in names})
    markup = table_markup(TableRows(table), 10)
    places = re.findall(r'data-name="(\w+)" data-place="(\d)"', markup)
    assert [name for name, _ in sorted(places, key=lambda place: place[1])] == [
        *("rank", "message", "short_name", "sum_ns", "name", "next_analysis")
    ]


def test_names_of_roofs_do_not_touch() -> None:
    """Labels of peaks that differ by a factor of two do not overlap."""
    kinds = {"fp8": 1979.0, "bf16": 989.0, "tf32": 495.0}
    shared = {"run": "a", "rank": 0, "name": "aten::mm", "input_shapes": None, "kernels": None}
    rows = [
        shared
        | {"category": "gemm", "math_type": kind, "peak_tflops": peak, "peak_tbps": 3.35}
        | {"call_count": 1, "device_ns": 1000, "flops": 100 * (at + 1), "moved_bytes": 1}
        | {"roofline_ns": 1.0, "intensity": 100.0 * (at + 1), "covered_pct": 50.0, "reason": None}
        for at, (kind, peak) in enumerate(kinds.items())
    ]
    spec = spec_of(roofline(pd.DataFrame(rows)))
    labels = [r["label"] for rows in spec["datasets"].values() for r in rows if "label" in r]
    assert len(labels) == 3
    decades = 8  # from 0.0001, where the lowest point is, to 10,000
    apart = [
        math.log10(a / b) * spec["height"] / decades for a, b in pairwise(sorted(labels)[::-1])
    ]
    assert min(apart) > 13.9


def test_sentences_are_whole_and_names_are_folded() -> None:
    """Messages are shown in full, but the middle of a long name is folded."""
    words = "The host waits " * 9
    table = pa.table({"name": ["k" * 99], "message": [words], "rank": [0]})
    markup = table_markup(TableRows(table), 10)
    assert f'<td class="long">{words}</td>' in markup
    assert markup.count("<s>") == 1


def test_names_in_a_flame_graph_fit_at_any_width() -> None:
    """Names in a flame graph are clipped to their rectangle as drawn."""
    rows = {"run": "a", "rank": 0, "stack": "main;step", "device_ns": 0, "host_ns": 5}
    spec = spec_of(folded_stacks(pd.DataFrame([rows])))
    text = next(
        layer["mark"] for layer in spec["vconcat"][0]["layer"] if layer["mark"]["type"] == "text"
    )
    assert "item.mark.group.width * datum.share" in text["limit"]["expr"]
    assert text["color"] == ON_COLOR


def test_the_largest_rows_by_the_order_of_an_analysis_are_kept() -> None:
    """The sort key of the analysis decides which rows are kept, not the first time column."""
    analysis = load_library().find("operator_unique_args")
    rows = {"run": "a", "rank": [0, 0, 1, 1], "name": ["w", "x", "y", "z"], "kernel_count": 1}
    times = {"host_total_ns": [9_000, 1_000, 8_000, 2_000], "device_self_ns": [70, 60, 90, 80]}
    table = pa.Table.from_pandas(pd.DataFrame(rows | times), preserve_index=False)
    markup = table_markup(TableRows(table, analysis), 2)
    assert re.findall(r"<td>(\w)</td>", markup) == ["y", "z"]
    said = "The 2 of 4 rows with the largest values of “Device self”, sorted by "
    assert f"{said}“Rank”, then “Device self”, largest first." in markup
    assert "of 4 rows" not in table_markup(TableRows(table, analysis), 4)
    # Without a sort key, the first rows are kept.
    plain = pa.table({"rank": [0, 1, 2], "name": ["x", "y", "z"]})
    assert "The first 2 of 3 rows." in table_markup(TableRows(plain, None), 2)


def test_a_narrow_page_shows_what_tells_rows_apart_and_what_they_are_about() -> None:
    """Constant columns, ids and start times come last; shapes come early if names repeat."""

    def first(analysis: str, **rows: object) -> list[str]:
        table = pa.Table.from_pandas(pd.DataFrame(rows), preserve_index=False)
        order = places(table, load_library().find(analysis))
        return sorted(order, key=lambda column: order[column])

    steps = {"rank": [0, 0, 1], "step": [1, 2, 1], "event_id": [5, 6, 7], "ts": [1, 2, 3]}
    assert first("profiler_steps", **steps, dur=[9, 8, 7]) == [
        *("rank", "step", "dur", "ts", "event_id")
    ]
    calls = {"rank": [0, 0, 0], "name": ["mm", "mm", "bmm"], "input_shapes": ["a", "b", "c"]}
    calls |= {"host_total_ns": [1, 2, 3], "device_self_ns": [6, 5, 4]}
    assert first("operator_unique_args", **calls) == [
        *("name", "input_shapes", "device_self_ns", "host_total_ns", "rank")
    ]
    flops = {"rank": [0, 1], "step_ns": [9, 8], "mfu_pct": [1.0, 2.0], "reason": ["why", "why"]}
    assert first("mfu", **flops) == ["rank", "step_ns", "mfu_pct", "reason"]


def test_a_question_about_waits_needs_ranks_that_wait() -> None:
    """The step accounting of a single rank does not answer the question about waits."""
    where = '<a href="#step_accounting">'
    assert questions_markup({"step_accounting", "collective_waits"}, {}).count(where) == 2
    alone = questions_markup({"step_accounting"}, {"collective_waits": "There is one rank."})
    assert alone.count(where) == 1
    assert "Does it wait or transfer? " in alone.partition("There is one rank.")[0][-60:]


def test_titles_are_unique() -> None:
    """Titles are unique, because equal entries in the side bar would be ambiguous."""
    titles = Counter(analysis.title for analysis in load_library().newest())
    assert [title for title, count in titles.items() if count > 1] == []


def test_each_position_in_a_topic_is_taken_once() -> None:
    """Positions of sections within a topic are unique and consecutive."""
    for topic in topics(load_library()):
        stated = [s.position for s in topic.sections if math.isfinite(s.position)]
        assert stated == [*range(1, len(stated) + 1)], topic.key


def test_a_common_reason_for_missing_answers_is_stated_once() -> None:
    """Questions without an answer for the same reason share one line, after the answered ones."""
    reasons = dict.fromkeys(("idle_causes", "synchronizations", "gpu_summary"), NO_DEVICE)
    listed = unescape(questions_markup({"step_time_stats"}, reasons))
    assert listed.count(NO_DEVICE) == 1
    assert "Why is my GPU idle? Where does the host wait for the GPU?" in listed
    assert listed.index("Which step is an outlier?") < listed.index("Why is my GPU idle?")
