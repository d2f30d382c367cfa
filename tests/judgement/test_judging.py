"""Every constant of the judgement decides a verdict: changed to 0.7 or 1.4 of its value, it changes the verdict of a job.

judging.csv states the job: the seed of tests/judgement/drawn_blocks.py, the rank, and its verdict
before and after. A constant that is not in it decides nothing, and can be removed.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from hta_sql.library import sqltext
from hta_sql.library.objects import load_library
from tests.jobs.tables import database
from tests.judgement.drawn_blocks import empty_tables, fill
from tests.judgement.job import MS, Fault, Job
from tests.judgement.kineto import hide, write
from tests.judgement.programs import simulate
from tests.pinned.jobs import CATALOG, make_catalog

CHANGES = Path(__file__).with_name("judging.csv")
CONSTANT = re.compile(r"^    '(\w+)': ([\d.e-]+)", re.MULTILINE)

VERDICTS = """
    SELECT concat_ws(
        ', ', verdict, cause, CASE WHEN is_slow_stage THEN 'slow stage' END, replace(message_code, 'stragglers.', '')
    )
    FROM stragglers_v1(runs := [$run], ranks := [$rank], min_pct := lib.judging().least_pct)
"""

LATE = 2
FOUR_CALLS = Job(
    framework="tensor",
    ranks=4,
    tensor=4,
    steps=4,
    layers=2,
    seed=8,
    faults=(Fault("data loading", (LATE,), 2 * MS), Fault("slower clocks", (LATE,), 1.08)),
)
"""A job whose late rank holds the others up in the first collective of each step, and a little in the others."""

HIDDEN = {
    "together": (0, 0.0),
    "once-apart": (1, 0.2),
    "nearly-together": (4, 0.04),
    "apart": (4, 0.06),
}
"""Run ─▶ calls of the first collective that end apart, and by how much, as a share of the delay.

Nothing but its times shows that this collective waits: it has the name of a kernel.
"""

WAITING = (
    ("barrier_calls", 1.4, "together", "straggler", "none"),
    ("barrier_call_share", 0.7, "once-apart", "none", "straggler"),
    ("barrier_call_share", 1.4, "together", "straggler", "none"),
    ("barrier_end_share", 0.7, "nearly-together", "straggler", "none"),
    ("barrier_end_share", 1.4, "apart", "none", "straggler"),
)
"""Constant, factor, run, and the verdict on the late rank before and after."""


def stated() -> list[dict[str, str]]:
    """Return the lines of judging.csv."""
    with CHANGES.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def macro(name: str = "", factor: float = 1) -> str:
    """Return the statement that creates lib.judging with one constant multiplied by a factor."""
    (about,) = (one for one in load_library().macros_in_order if one.name == "judging")
    return re.sub(
        rf"^(    '{name}': )([\d.e-]+)",
        lambda found: f"{found[1]}{float(found[2]) * factor!r}",
        about.text,
        flags=re.MULTILINE,
    )


def constants() -> dict[str, float]:
    """Return the constants of lib.judging by name."""
    return {name: float(value) for name, value in CONSTANT.findall(macro())}


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database with all jobs of judging.csv."""
    with database(tmp_path_factory.mktemp("judging")) as opened:
        empty_tables(opened)
        fill(opened, sorted({int(line["seed"]) for line in stated()}))
        yield opened


def hidden(folder: Path, spoiled: int, share: float) -> dict[int, str]:
    """Write the traces of FOUR_CALLS with the first collective of each step as an unknown kernel."""
    paths = write(folder, FOUR_CALLS, simulate(FOUR_CALLS))
    for rank, path in paths.items():
        trace = json.loads(Path(path).read_text(encoding="utf-8"))
        kernels = [e for e in trace["traceEvents"] if "stream" in e["args"]]
        collectives = [e for e in kernels if "Collective name" in e["args"]]
        collectives.sort(key=lambda event: event["ts"])
        for number, event in enumerate(collectives[:: len(collectives) // FOUR_CALLS.steps]):
            hide(event, "fused_kernel")
            if rank == 0 and number < spoiled:
                event["dur"] += share * 2 * MS / 1000
        Path(path).write_text(json.dumps(trace), encoding="utf-8")
    return paths


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a catalog with the jobs of HIDDEN."""
    folder = tmp_path_factory.mktemp("waiting")
    make_catalog(folder, {run: hidden(folder / run, *spoil) for run, spoil in HIDDEN.items()})
    with duckdb.connect(str(folder / CATALOG)) as opened:
        yield opened


def verdict(con: duckdb.DuckDBPyConnection, line: dict[str, str]) -> str:
    """Return the verdict on the rank of a line, with its cause and the code of its message."""
    values = {"run": f"drawn-{line['seed']}", "rank": int(line["rank"])}
    ((found,),) = con.execute(VERDICTS, values).fetchall()
    return str(found)


def test_every_constant_has_a_job_whose_verdict_changes() -> None:
    """judging.csv or WAITING has each constant, and no other name."""
    waiting = {constant for constant, *_ in WAITING}
    assert {line["constant"] for line in stated()} | waiting == set(constants())


def test_default_arguments_are_the_constant() -> None:
    """The default of min_pct is least_pct."""
    defaults = {
        parameter.default
        for analysis in load_library().analyses
        if analysis.name in {"stragglers_v1", "slow_links_v1"}
        for parameter in analysis.parameters
        if parameter.name == "min_pct"
    }
    assert {float(str(default)) for default in defaults} == {constants()["least_pct"]}


def test_an_unknown_constant_is_an_error(con: duckdb.DuckDBPyConnection) -> None:
    """The engine refuses a constant that lib.judging does not have."""
    with pytest.raises(duckdb.BinderException, match="late_oods"):
        con.execute("SELECT lib.judging().late_oods")


@pytest.mark.slow(reason="large")
@pytest.mark.parametrize(
    "line", stated(), ids=[f"{line['constant']}-{line['factor']}" for line in stated()]
)
def test_a_constant_decides_the_verdict(
    line: dict[str, str], con: duckdb.DuckDBPyConnection
) -> None:
    """The verdict on the stated rank changes with the constant, and only then."""
    con.execute(macro())
    before = verdict(con, line)
    con.execute(macro(line["constant"], float(line["factor"])))
    after = verdict(con, line)
    con.execute(macro())
    assert (before, after) == (line["before"], line["after"])


@pytest.mark.slow(reason="large")
@pytest.mark.parametrize("case", WAITING, ids=[f"{case[0]}-{case[1]}" for case in WAITING])
def test_a_constant_decides_which_kernels_wait(
    case: tuple[str, float, str, str, str], catalog: duckdb.DuckDBPyConnection
) -> None:
    """The late rank is a straggler if the kernels in which the others wait for it are recognized."""
    constant, factor, run, before, after = case
    assert judged_again(catalog, macro(), run) == before
    assert judged_again(catalog, macro(constant, factor), run) == after


def judged_again(con: duckdb.DuckDBPyConnection, statement: str, run: str) -> str:
    """Create lib.judging, derive the parts of steps again, and return the verdict on the late rank."""
    con.execute(statement)
    con.execute("CREATE OR REPLACE TABLE parts AS FROM derived.step_parts_v1(NULL)")
    con.execute(sqltext.view_of("derived.step_parts", "parts"))
    rows = con.execute(
        "SELECT verdict FROM stragglers_v1(runs := [$run], ranks := [$rank])",
        {"run": run, "rank": LATE},
    )
    ((found,),) = rows.fetchall()
    return str(found)
