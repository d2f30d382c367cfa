"""Every question in docs/questions.md is answered correctly by its command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.cli import main
from hta_sql.cli.questions import QUESTIONS as LISTED
from tests.questions.job import OUTPUT_BYTES, SHAPES, trace
from tests.safety.test_artifacts import write_snapshots
from tests.serving_jobs import continuous_batching
from tests.serving_jobs import trace as engine
from tests.shared_stores import ingest_only

PAGE = Path(__file__).parents[2] / "docs" / "questions.md"
TRACES = Path(__file__).parents[1] / "traces"
RECORDED = TRACES / "recorded"
JOBS = {"STORE", "STORE:RUN", "JOB", "DUMPS"}
LINE = re.compile(r"^\| (.+?) \| `hta-sql (.+?)` \|", re.MULTILINE)
TABLE, _, OTHER = PAGE.read_text(encoding="utf-8").partition("Other commands")
QUESTIONS, OTHERS = dict(LINE.findall(TABLE)), dict(LINE.findall(OTHER))

TRUTH: dict[str, dict[str, Any]] = {
    "Where does a step go?": {"step_ns": 1_000_000, "compute_ns": 630_000},
    "Where does it go on the host?": {
        "data_loading_ns": 200_000,
        "synchronization_ns": 185_000,
        "forward_ns": 40_000,
        "other_ns": 575_000,
    },
    "Why is my GPU idle?": {"cause": "data loading", "idle_ns": 200_000},
    "Where does the host wait for the GPU?": {"operator": "aten::item", "idle_after_ns": 90_000},
    "Which operator costs most?": {"name": "aten::mm", "device_self_ns": 300_000},
    "With which shapes?": {"name": "aten::mm", "device_self_ns": 300_000},
    "From which line?": {"frame": "model.py(20): forward", "device_self_ns": 340_000},
    "Which operators launch which kernels?": {"name": "aten::mm", "device_ns": 300_000},
    "Are the tensor cores used?": {"tensor_core_pct": 0.0},
    "How far from the device's limit?": {"flops": 2 * 1024**3, "peak_tflops": 19.5},
    "Is communication overlapped?": {"rank": 1, "overlap_pct": 0.0},
    "Which step is an outlier?": {"longest_step": 1, "max_ns": 1_000_000},
    "Where is the memory peak?": {"peak_allocated_bytes": 2 * OUTPUT_BYTES, "peak_ts": 241_000},
    "Who allocated what is in use there?": {
        "bytes": OUTPUT_BYTES,
        "frame": "model.py(20): forward",
    },
    "Which rank is late, and why?": {"rank": 1, "is_straggler": True, "cause": "slower compute"},
    "Does it wait or transfer?": {"rank": 0, "exposed_wait_ns": 20_000},
    "What should I do next?": {"rule": "elementwise_kernels", "saved_ns": 330_000},
}
"""Question ─▶ expected values in the row that answers it."""

OF_TWO_RANKS = {
    "Which rank is late, and why?": "late",
    "Is communication overlapped?": "late",
    "Does it wait or transfer?": "waits",
}
"""Question ─▶ the two-rank job that it needs; rank 1 of both jobs is late."""


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Ingest the one-rank job and both two-rank jobs."""
    folder = tmp_path_factory.mktemp("questions")
    path = folder / "trace.json"
    path.write_text(json.dumps(trace()), encoding="utf-8")
    ingest_only({0: str(path)}, folder / "job", run="job")
    for name in OF_TWO_RANKS.values():
        ranks = {rank: str(TRACES / f"{name}_{rank}.json") for rank in (0, 1)}
        ingest_only(ranks, folder / name, run="job")
    return {name: folder / name for name in ("job", *OF_TWO_RANKS.values())}


def test_every_question_has_its_answer() -> None:
    """The page has exactly the questions with an expected answer, in the same order."""
    assert list(QUESTIONS) == list(TRUTH)


@pytest.mark.parametrize("question", TRUTH)
def test_a_question_is_answered(
    question: str, stores: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The first row of the command on the page answers the question.

    If the expected answer names a rank, the first row of that rank answers it.
    """
    store = stores[OF_TWO_RANKS.get(question, "job")]
    arguments = QUESTIONS[question].replace("STORE", str(store)).split()
    assert main([*arguments, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    truth = TRUTH[question]
    if "rank" in truth:
        rows = [row for row in rows if row["rank"] == truth["rank"]]
    assert {name: rows[0][name] for name in truth} == truth


def test_shapes_are_those_of_the_call(stores: dict[str, Path]) -> None:
    """Input shapes are the lists of sizes that the operator was called with."""
    with hta_sql.open(stores["job"]) as store:
        row = store.run("operator_unique_args").records()[0]
    assert json.loads(row["input_shapes"]) == SHAPES


@pytest.fixture(scope="module")
def files(
    stores: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """Return the files that each question of other commands is about."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "serving.json").write_text(json.dumps(engine(continuous_batching(7, 20))), "utf-8")
    job = str(stores["job"])
    return {
        "What should I do first?": [job],
        "What costs the most?": [job],
        "What changed between two runs?": [str(stores["late"]), str(stores["waits"])],
        "What is missing in the trace?": [job],
        "Where does serving time go?": [str(folder / "serving.json")],
        "What hangs, and who caused it?": [str(RECORDED / "hangs" / "never_entered_group")],
        "What fills the memory?": [str(write_snapshots(folder / "snapshots"))],
    }


TOLD = {
    "What should I do first?": "Fuse elementwise operations",
    "What costs the most?": "ampere_sgemm_128x64_tn",
    "What changed between two runs?": "step",
    "What is missing in the trace?": "does not show whether the GPU was idle",
    "Where does serving time go?": "decode",
    "What hangs, and who caused it?": "never",
    "What fills the memory?": "bytes",
}
"""Question ─▶ a word of its answer."""


@pytest.mark.parametrize("question", TOLD)
def test_another_command_answers_its_question(
    question: str, files: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """The command in the second table works on files of its kind."""
    words = [word for word in OTHERS[question].split() if word not in JOBS]
    code = main([*words[:1], *files[question], *words[1:]])
    out = capsys.readouterr().out
    assert TOLD[question] in out, out
    assert code == (4 if words[0] == "hang" else 0)


def test_the_help_lists_documented_questions(capsys: pytest.CaptureFixture[str]) -> None:
    """``hta-sql`` alone lists questions of the page, with the same commands."""
    assert main([]) == 0
    out = capsys.readouterr().out
    documented = QUESTIONS | OTHERS
    for question, command in LISTED:
        assert re.search(f"{re.escape(question)} +{re.escape(command)}", out)
        words = [word for word in documented[question].split() if word not in JOBS]
        assert [word for word in command.split()[1:] if word not in JOBS] == words


@pytest.mark.parametrize("command", [command for _, command in LISTED if command.endswith("JOB")])
def test_a_listed_command_runs_on_a_trace(command: str, stores: dict[str, Path]) -> None:
    """It needs no store; a question that the trace cannot answer is no error."""
    path = str(stores["job"].parent / "trace.json")
    assert main([path if word == "JOB" else word for word in command.split()[1:]]) == 0
