"""Tests that recorded Flight Recorder dumps get the answer that docs/hangs.md states.

The dumps were recorded by ``tests/traces/recorded/record_states.py``: gloo with four ranks and a
time-out of two seconds, while the job ran and after the time-out.
"""

from __future__ import annotations

import json
import os
import pickle
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.cli import main

RECORDED = Path(__file__).parent / "traces" / "recorded" / "hang_states"
DOCUMENT = Path(__file__).parents[1] / "docs" / "hangs.md"
STATE = re.compile(
    r"^\| `(\w+)` \|.*\| (\d)(?: `(\w+)`)?(?: of ranks? ([\d, -]+))? \|$", re.MULTILINE
)

Answer = tuple[int, str | None, str | None]
States = dict[str, Answer]
Dump = dict[str, Any]
Row = dict[str, Any]


def documented() -> States:
    """Return the exit code, the kind of the first row and the accused ranks of each state."""
    found = STATE.findall(DOCUMENT.read_text(encoding="utf-8"))
    return {name: (int(code), kind or None, ranks or None) for name, code, kind, ranks in found}


def answers_of(dumps: Mapping[str, Path], store: Path) -> dict[str, Answer]:
    """Ingest dumps as the runs of one store, and return the same of each run."""
    for run, folder in dumps.items():
        hta_sql.ingest_shard(folder, store, run=run, jobs=1, shard=(1, 1))
    with hta_sql.publish(store) as opened:
        asked = [opened.run(name).records() for name in ("hang", "hang_grid", "collective_history")]
    return {
        run: _answer(folder, *([row for row in rows if row["run"] == run] for rows in asked))
        for run, folder in dumps.items()
    }


def _answer(dumps: Path, rows: list[Row], grid: list[Row], history: list[Row]) -> Answer:
    assert {row["channel"] for row in grid} >= {
        row["channel"] for row in rows if not row["is_p2p"] and row["missing_ranks"]
    }
    stored = {entry["state"] for path in dumps.iterdir() for entry in _read(path)["entries"]}
    assert {row["state"] for row in history} <= stored
    if not rows:
        return 0, None, None
    code = 4 if any(row["is_certain"] for row in rows) else 3
    return code, rows[0]["kind"], rows[0]["culprit_ranks"]


def _read(path: Path) -> Dump:
    content = path.read_bytes()
    found: Dump = json.loads(content) if content.startswith(b"{") else pickle.loads(content)  # noqa: S301
    return found


def written(name: str, folder: Path, change: Callable[[Dump], None], *, as_pickle: bool) -> Path:
    """Write changed dumps of a state."""
    folder.mkdir()
    for path in (RECORDED / name).iterdir():
        dump = _read(path)
        change(dump)
        target = folder / (f"nccl_trace_{path.stem}" if as_pickle else path.name)
        target.write_bytes(pickle.dumps(dump, 2) if as_pickle else json.dumps(dump).encode())
    return folder


def unchanged(_: Dump) -> None:
    """Leave a dump as it is."""


def with_hook_names(prefix: str) -> Callable[[Dump], None]:
    """Return a change to the names of operations that the generic hook gives."""

    def change(dump: Dump) -> None:
        for entry in dump["entries"]:
            entry["profiling_name"] = entry["profiling_name"].replace("gloo:", prefix)

    return change


def as_after_an_abort_of_nccl(dump: Dump) -> None:
    """Mark what was retired as completed, as NCCL does when it aborts and cleans up."""
    for entry in dump["entries"]:
        entry["profiling_name"] = entry["profiling_name"].replace("gloo:", "nccl:")
        entry["state"] = "completed" if entry["retired"] else "started"


def test_every_recorded_state_is_documented() -> None:
    """The table has the recorded states and no others."""
    assert sorted(documented()) == sorted(path.name for path in RECORDED.iterdir())


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """Return the answer for each recorded state."""
    dumps = {path.name: path for path in sorted(RECORDED.iterdir())}
    return answers_of(dumps, tmp_path_factory.mktemp("recorded") / "job.store")


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDED.iterdir()))
def test_the_answer_for_a_state_is_the_documented_one(
    name: str, recorded: dict[str, Answer]
) -> None:
    """Dumps in JSON get the documented exit code, kind and ranks."""
    assert recorded[name] == documented()[name]


CHANGED = (
    pytest.param(unchanged, id="pickle"),
    *(pytest.param(with_hook_names(prefix), id=prefix) for prefix in ("c10d:", "nccl2:", "ncclx:")),
    pytest.param(as_after_an_abort_of_nccl, id="nccl after an abort"),
)
SOME = (
    "healthy_after",
    "missing_after",
    "went_on_after",
    "other_operation_after",
    "missing_during",
)


@pytest.mark.parametrize("change", CHANGED)
def test_pickles_and_other_backends_get_the_same_answer(
    change: Callable[[Dump], None], tmp_path: Path
) -> None:
    """Pickles, names of the generic hook and NCCL after an abort change no answer."""
    dumps = {name: written(name, tmp_path / name, change, as_pickle=True) for name in SOME}
    told = documented()
    assert answers_of(dumps, tmp_path / "job.store") == {name: told[name] for name in SOME}


ENTERED = "time_created_ns"


SOON: dict[tuple[str, float], Answer] = {
    ("missing_during", 0.1): (3, "undecided", None),
    ("missing_during", 0): (3, "undecided", None),  # each at its own last operation
    ("missing_during", 60): (4, "missing", "2"),
    ("missing_during", -3600): (4, "missing", "2"),  # before its own operations: unknown
    ("killed_during", 0.1): (3, "undecided", None),
    ("other_order_during", 0.1): (3, "undecided", None),
    ("subgroup_during", 0.1): (3, "undecided", None),
    ("other_operation_during", 0.1): (4, "mismatch", "3"),
}
"""State, seconds between the last operation and the dump ─▶ the answer."""


def test_dumps_written_soon_after_an_operation_was_entered_accuse_nobody(tmp_path: Path) -> None:
    """The file of each dump was changed some time after the last operation of the job was entered.

    The missing ranks may be on their way; a mismatch is certain at once.
    """
    folders = {f"run{number}": case for number, case in enumerate(SOON)}
    dumps = {}
    for run, (name, written_after_s) in folders.items():
        dumps[run] = written(name, tmp_path / run, unchanged, as_pickle=False)
        entered = {
            path: max(entry[ENTERED] for entry in _read(path)["entries"])
            for path in dumps[run].iterdir()
        }
        last = max(entered.values())
        for path, own in entered.items():
            ns = last + int(written_after_s * 1e9) if written_after_s else own
            os.utime(path, ns=(ns, ns))
    answers = answers_of(dumps, tmp_path / "job.store")
    assert {folders[run]: answer for run, answer in answers.items()} == SOON


@pytest.mark.parametrize(
    ("name", "code"), [("healthy_after", 0), ("missing_after", 3), ("went_on_after", 4)]
)
def test_the_exit_code_says_whether_something_hangs(
    name: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing hangs: 0; undecided: 3, with the reason; something hangs: 4."""
    assert main(["hang", str(RECORDED / name)]) == code
    out = capsys.readouterr().out
    assert ("nothing hangs" in out) == (code == 0)
    assert ("It is unknown whether" in out) == (code == 3)
