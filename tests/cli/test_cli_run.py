"""Tests of ``hta-sql run``: options, output formats and error messages."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow.parquet as pq
import pytest

import hta_sql
from hta_sql.cli.analysis_options import option_name, scan
from hta_sql.cli.failures import failure_of
from hta_sql.cli.run import run as run_command
from hta_sql.library.objects import load_library

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def test_run_options_come_from_the_sql(cli: Cli, store: Path) -> None:
    """Every parameter of an analysis has an option, and no two options have the same name."""
    own = {name for param in run_command.params for name in (*param.opts, *param.secondary_opts)}
    for analysis in load_library().analyses:
        done = cli("run", store, analysis.name, "--help")
        words = " ".join(done.out.split())
        assert done.code == 0
        for parameter in analysis.parameters:
            assert option_name(parameter) in words
            assert option_name(parameter) not in own
            assert parameter.name not in {param.name for param in run_command.params}
    assert "--ranks" in cli("run", "temporal_breakdown", "--help").out
    assert "--ranks" not in cli("run", "--help").out


def test_run_passes_values(cli: Cli, store: Path) -> None:
    """Options may precede or follow the arguments, and lists, ranges and flags are parsed."""
    query = ("--format", "json")
    done = cli("run", "--ranks", "0-1", store, "gpu_kernels_by_name", "--num-kernels=1", *query)
    assert {row["name"] for row in json.loads(done.out)} >= {"others", "ncclDevKernel_AllReduce"}
    done = cli("run", store, "temporal_breakdown_v1", "--ranks", "1", "--runs", "job,job", *query)
    assert [row["rank"] for row in json.loads(done.out)] == [1]
    flags = ("--include-last-profiler-step", "--version", "1")
    assert len(json.loads(cli("run", *flags, store, "temporal_breakdown", *query).out)) == 2


def test_run_gives_what_the_api_gives(cli: Cli, store: Path) -> None:
    """CSV, JSON and Parquet output has the same values as the Python API."""
    with hta_sql.open(store) as opened:
        expected = opened.run("gpu_kernels_by_name").arrow().to_pylist()
    call = ("run", store, "gpu_kernels_by_name", "--format")
    assert json.loads(cli(*call, "json").out) == expected
    assert pq.read_table(io.BytesIO(cli(*call, "parquet").raw)).to_pylist() == expected
    rows = list(csv.DictReader(io.StringIO(cli(*call, "csv").out, newline="")))
    kinds = {key: type(value) for row in expected for key, value in row.items() if value}
    read = [{k: kinds.get(k, str)(v) if v != "" else None for k, v in r.items()} for r in rows]
    assert read == expected


def test_run_writes_files_by_suffix(cli: Cli, store: Path, tmp_path: Path) -> None:
    """The suffix of the output file selects the format."""
    for name, start in {
        "a.csv": b"run,rank,",
        "a.json": b'[{"run"',
        "a.parquet": b"PAR1",
        "a.md": b"| run |",
        "a.txt": b"run ",
    }.items():
        done = cli("run", store, "temporal_breakdown", "-o", tmp_path / name)
        assert (done.code, done.out) == (0, "")
        assert done.err == f"Wrote 2 rows to {tmp_path / name}.\n"
        assert (tmp_path / name).read_bytes().startswith(start)
    assert len(list(tmp_path.iterdir())) == 5
    cli("run", store, "temporal_breakdown", "-o", tmp_path / "no" / "a.csv").fails(
        1, "No such folder", str(tmp_path / "no")
    )
    cli("report", store, "-o", tmp_path / "no" / "a.html").fails(
        1, "No such folder", str(tmp_path / "no")
    )
    for name in ("a.xlsx", "a.duckdb"):
        cli("run", store, "temporal_breakdown", "-o", tmp_path / name).fails(2, ".csv", "--format")
        assert not (tmp_path / name).exists()
    sheet = cli("run", store, "temporal_breakdown", "-o", tmp_path / "a.dat", "--format", "csv")
    assert sheet.code == 0


def test_run_draws_charts(cli: Cli, store: Path, tmp_path: Path) -> None:
    """The suffix of the chart file selects its format; an analysis without a chart is an error."""
    chart = tmp_path / "a.svg"
    done = cli("run", store, "temporal_breakdown", "--chart", chart)
    assert (done.code, done.out) == (0, "")
    assert chart.read_text().startswith("<svg")
    cli("run", store, "idle_gaps", "--chart", chart).fails(1, "no chart for idle_gaps")
    cli("run", store, "temporal_breakdown", "--chart", tmp_path / "a.doc").fails(2, ".html")


def test_a_question_ends_a_usage_message() -> None:
    """Messages end with a full stop unless they end with a question mark."""
    for said, shown in (
        ("No such option. Did you mean '--a'?", "'--a'?"),
        ("No option", "option."),
    ):
        found = failure_of(click.UsageError(said))
        assert found is not None
        assert found.message.endswith(f"{shown} See: hta-sql --help")


@pytest.mark.parametrize(
    "command", [("run", "top_costs"), ("advice",), ("report", "-o", "page.html")]
)
def test_memory_has_a_limit(cli: Cli, store: Path, command: tuple[str, ...]) -> None:
    """If a command exceeds the memory limit, the error names the option that raises it."""
    name, *rest = command
    failed = cli(name, store, *rest, "--memory-limit", "100kB")
    assert failed.code == 1
    assert failed.err.startswith("error: the engine failed: Out of Memory")
    assert failed.err.rstrip().endswith("Raise the limit: --memory-limit")
    assert len(failed.err.splitlines()) == 1


def test_run_and_report_read_traces(cli: Cli, traces: Path, store: Path, tmp_path: Path) -> None:
    """Traces are ingested temporarily, and a note explains how and where to store them permanently."""
    folder = tmp_path / "job"
    shutil.copytree(traces, folder, ignore=shutil.ignore_patterns("*.store", ".hta_sql"))
    call = ("gpu_kernels_by_name", "--format", "csv")
    done = cli("run", folder, *call)
    assert done.out == cli("run", store, *call).out
    assert (
        done.err
        == f"note: {folder} was ingested temporarily; to store it permanently in {folder / '.hta_sql'}: "
        f"hta-sql ingest {folder}\n"
    )
    file = folder / "rank0.json"
    shutil.copy(next(path for path in folder.iterdir() if path.is_file()), file)
    assert f": hta-sql ingest {file} -o rank0.store\n" in cli("run", file, *call).err
    file.unlink()
    before = sorted(folder.rglob("*"))
    page = tmp_path / "report.html"
    assert cli("report", folder, "-o", page).code == 0
    assert "gpu_kernels_by_name" in page.read_text()
    assert sorted(folder.rglob("*")) == before


def test_run_says_that_shards_are_not_published(cli: Cli, traces: Path, tmp_path: Path) -> None:
    """If shards are not published, the error suggests the command that publishes them."""
    hta_sql.ingest_shard(traces, tmp_path / "job.store", shard=(1, 2))
    done = cli("run", tmp_path / "job.store", "temporal_breakdown")
    done.fails(1, f"hta-sql publish {tmp_path / 'job.store'}")


def test_run_failures(cli: Cli, store: Path, tmp_path: Path) -> None:
    """Each error names what is wrong and suggests what to do."""
    name = "temporal_breakdown"
    cli("run", store, "temporal_brakdown").fails(1, "Did you mean 'temporal_breakdown'?")
    cli("run", store, name, "--version", "9").fails(1, "no version 9")
    cli("run", store, name, "--ranks", "5").fails(1, "No rank 5", "0-1")
    cli("run", store, name, "--runs", "nope").fails(1, "No run 'nope'", "job")
    cli("run", store, name, "--rankz", "5").fails(2, "--rankz", "--ranks", f"{name} --help")
    cli("run", store, name, "--ranks", "x").fails(2, "--ranks", "integers")
    cli("run", store, "idle_gaps", "--kernel-wait-below-ns", "soon").fails(
        2, "--kernel-wait", "soon"
    )
    cli("run", tmp_path / "no", name).fails(1, "No store at", f"ingest TRACES -o {tmp_path}/no")
    (tmp_path / "empty").mkdir()
    cli("run", tmp_path / "empty", name).fails(1, "No traces in")
    cli("run", name).fails(2, f"No store given: hta-sql run STORE {name}")
    swapped = f"'{name}' is an analysis; pass the store first: hta-sql run job.store {name}"
    cli("run", name, "job.store").fails(2, swapped)
    cli("run", store).fails(2, "NAME")
    cli("run", store, name, "--format", "xml").fails(2, "--format", "csv")
    cli("runn").fails(2, "runn")


def test_scan_finds_arguments_between_options() -> None:
    """The analysis is found among the arguments before its options are parsed."""
    library = load_library()
    assert scan(["s", "n", "--version", "2"], library) == (["s", "n"], 2)
    assert scan(["--ranks", "0", "s", "--limit=3", "n"], library) == (["s", "n"], None)
    assert scan(["--include-last-profiler-step", "s", "-ofile", "n"], library) == (["s", "n"], None)
    assert scan(["--version=3", "--", "-s", "n"], library) == (["-s", "n"], 3)


def test_a_switch_with_a_value_names_the_switch_to_use(cli: Cli, store: Path) -> None:
    """A Boolean option takes no value; an option of other analyses names them."""
    name, option = "user_annotation_breakdown", "--use-gpu-annotation"
    for arguments in ((option, "false"), (f"{option}=false",)):
        done = cli("run", store, name, *arguments)
        assert done.code == 2
        assert f"{option} takes no value: use --no-use-gpu-annotation. See:" in done.err
    assert f"use {option}. See:" in cli("run", store, name, option, "TRUE").err
    done = cli("run", store, "operator_table", option, "false")
    assert f"operator_table has no option {option}, an option of {name}." in done.err


def test_missing_device_activity_is_stated_with_the_option_that_records_it(
    cli: Cli, tmp_path: Path
) -> None:
    """An analysis of the device has this reason only if no trace has device activity."""
    traces = Path(__file__).parents[1] / "traces"
    host = tmp_path / "host.json"
    host.write_bytes((traces / "host_parts.json").read_bytes())
    done = cli("run", host, "idle_causes")
    assert done.out.count("No device activity was recorded.") == 1
    whole, table = (
        cli("run", host, "idle_causes", *more) for more in (["--limit", "0"], ["--format", "csv"])
    )
    assert "No device activity was recorded." in whole.out
    assert "note: No device activity was recorded." in table.err
    assert "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]" in done.out
    assert "needs:" not in done.out


def test_a_breakdown_of_the_device_points_to_that_of_the_host(cli: Cli, tmp_path: Path) -> None:
    """Without a device, a table whose main column is empty ends with the analysis to run instead."""
    traces = Path(__file__).parents[1] / "traces"
    host = tmp_path / "host.json"
    host.write_bytes((traces / "host_parts.json").read_bytes())
    out = cli("run", host, "step_accounting").out
    assert out.endswith("What the host does in a step is in host_accounting.\n")
    device = tmp_path / "device.json"
    device.write_bytes((traces / "overlap_two_streams.json").read_bytes())
    assert "host_accounting" not in cli("run", device, "step_accounting").out


@pytest.mark.parametrize("name", ["step_accounting", "kernel_table"])
def test_a_folder_of_dumps_is_not_asked_for_another_activity(cli: Cli, name: str) -> None:
    """Ranks without a trace have no device activity, but that is not what is missing."""
    dumps = Path(__file__).parents[1] / "traces" / "recorded" / "hang_states" / "missing_during"
    out = cli("run", dumps, name).out
    assert "No rank has a trace with events. For Flight Recorder dumps: hta-sql hang" in out
    assert "ProfilerActivity" not in out
