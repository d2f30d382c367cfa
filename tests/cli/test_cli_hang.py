"""Tests of ``hta-sql hang``: its message, table, rank map and exit code."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import pytest

from hta_sql.cli import main
from tests.hang_jobs import training, write_pickles

RECORDED = Path(__file__).parents[1] / "traces" / "recorded" / "hangs"
HOSTILE = pickle.dumps({"version": "2.10", "pg_config": {}}, 2)[:-1] + b"cos\nsystem\n(S'true'\ntR."


def test_a_hang_is_a_sentence_a_map_a_table_and_exit_code_4(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The output has the cause of the hang, a map of the ranks and a table."""
    assert main(["hang", str(RECORDED / "rank_missing")]) == 4
    out = capsys.readouterr().out
    assert "rank_missing: 4 dumps (ranks 0-3): 1 group stuck" in out
    assert (
        "1. Rank 2 never entered all_reduce of [1024] Float number 3 of group default_pg (0)" in out
    )
    assert "wait at /job/train.py:44 in reduce_gradients" in out
    assert "rank 2  . . -" in out
    assert "rank 3  . . W" in out
    assert re.search(r"default_pg \(0\) +2 +0-1, 3 +all_reduce", out)


def test_a_healthy_job_ends_with_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    """For a healthy job, the output says that nothing hangs."""
    assert main(["hang", str(RECORDED / "healthy")]) == 0
    assert "nothing hangs" in capsys.readouterr().out


def test_a_store_is_named_in_the_next_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a store, ``hang`` suggests a command that can be pasted."""
    store = tmp_path / "job.store"
    assert main(["ingest", str(RECORDED / "rank_missing"), "-o", str(store)]) == 0
    assert "4 Flight Recorder dumps, 19 operations" in capsys.readouterr().err
    assert main(["hang", str(store)]) == 4
    assert f"hta-sql run {store} collective_history --ranks 2" in capsys.readouterr().out


def test_json_has_the_rows_of_the_analysis(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON output has the rows of the analysis, with the same exit code."""
    assert main(["hang", str(RECORDED / "other_operation"), "--format", "json"]) == 4
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["kind"], row["culprit_ranks"]) == ("mismatch", "3")


def test_a_store_without_dumps_says_how_to_get_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Without dumps, the command fails and names the setting that makes PyTorch write them."""
    traces = RECORDED.parents[1] / "waits_0.json"
    assert main(["hang", str(traces)]) == 1
    assert "TORCH_FR_BUFFER_SIZE=2000" in capsys.readouterr().err


def test_damaged_dumps_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``ingest`` reports a damaged dump, and ``hang`` names its rank."""
    job = training(4, 2, 3)
    del job.programs[1][7:]
    dumps, store = write_pickles(job, tmp_path / "dumps"), tmp_path / "job.store"
    cut = dumps / "nccl_trace_rank_2"
    cut.write_bytes(cut.read_bytes()[:-700])
    assert main(["ingest", str(dumps), "-o", str(store)]) == 0
    assert "1 damaged span quarantined (table quarantine)" in capsys.readouterr().err
    for given in (store, dumps):
        assert main(["hang", str(given)]) == 4
        assert "rank 2: damaged Flight Recorder dump: it is cut off" in capsys.readouterr().out


def test_a_dump_that_is_refused_does_not_hide_what_the_others_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refused dump is reported, but so is a hang that the other dumps show."""
    job = training(4, 2, 3)
    dumps = write_pickles(job, tmp_path / "dumps")
    (dumps / "nccl_trace_rank_2").write_bytes(HOSTILE)
    assert main(["hang", str(dumps)]) == 1
    assert "nccl_trace_rank_2' was rejected" in capsys.readouterr().err
    del job.programs[1][7:]
    write_pickles(job, dumps)
    (dumps / "nccl_trace_rank_2").write_bytes(HOSTILE)
    assert main(["hang", str(dumps)]) == 4
    shown = capsys.readouterr()
    assert "Rank 1 never entered" in shown.out
    assert "nccl_trace_rank_2' was rejected" in shown.err


def test_lines_of_the_map_are_in_the_order_of_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    """The map is sorted by rank, and rows that name a culprit come first."""
    assert main(["hang", str(RECORDED / "never_entered_group")]) == 4
    out = capsys.readouterr().out
    assert out.index("1. Rank 3 never entered") < out.index("2. Probably follows from")
    ranks = [line.split()[1] for line in out.splitlines() if line.startswith("  rank ")]
    assert ranks == ["0", "1", "2", "3", "2"]


def test_a_hang_that_another_rank_explains_is_no_cause_and_does_not_blame_the_network(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rank 3 never entered a group whose ranks gloo does not state, so that group looks complete."""
    assert main(["hang", str(RECORDED / "never_entered_group")]) == 4
    out = capsys.readouterr().out
    assert "2 groups stuck, 1 cause, 1 group that only waits\n" in out
    assert (
        "2. Probably follows from the hang of default_pg (0): no dump states the ranks of group "
        "tp (2), and rank 3 may be missing in it as well."
    ) in out
    assert "look at the network" not in out


def test_groups_that_one_rank_blocks_are_one_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rank 1 ends early and blocks two groups: the summary counts one cause."""
    job = training(4, 2, 3)
    del job.programs[1][4:]
    assert main(["hang", str(write_pickles(job, tmp_path / "dumps"))]) == 4
    out = capsys.readouterr().out
    assert "3 groups stuck, 1 cause, 1 group that only waits" in out
    assert "\n2. Same cause as 1: Rank 1 never entered" in out


def test_with_several_incidents_each_verdict_map_row_and_command_names_its_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Folders of dumps become runs, and the output maps each run to its folder."""
    job = training(4, 2, 3)
    del job.programs[1][4:]
    night = write_pickles(job, tmp_path / "jobs" / "night")
    write_pickles(training(2, 2, 2), tmp_path / "jobs" / "day")
    other = training(4, 2, 3)
    del other.programs[2][4:]
    write_pickles(other, night.parent / "noon")
    assert main(["hang", str(night.parent)]) == 4
    out = capsys.readouterr().out
    assert "jobs (folder day): 2 dumps (ranks 0-1): nothing hangs." in out
    assert "jobs-capture2 (folder night): 4 dumps (ranks 0-3): 3 groups stuck" in out
    assert f"hta-sql run {night.parent}:jobs-capture2 collective_history --ranks 1" in out
    assert f"hta-sql run {night.parent}:jobs-capture3 collective_history --ranks 2" in out
    assert "\njobs-capture2: tp (tp0), up to collective 3:" in out
    assert f"\n  hta-sql run {night.parent}:jobs-capture3 hang_grid\n" in out
    rows = [line for line in out.splitlines() if line.startswith("jobs-capture3  ")]
    assert len(rows) == 3


def test_a_limit_of_memory_holds_and_progress_is_shown_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``hang`` applies a memory limit, and shows a progress bar on a terminal."""
    dumps = str(RECORDED / "rank_missing")
    assert main(["hang", dumps, "--memory-limit", "1MB"]) == 1
    assert "memory" in capsys.readouterr().err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["hang", dumps, "--memory-limit", "1GB"]) == 4
    assert "Reading traces" in capsys.readouterr().err
