"""Sources of user analyses (option, variable, entry point), and where these can be used."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
from pathlib import Path

import duckdb
import pytest

import hta_sql
from hta_sql.cli import main
from hta_sql.comparison.gate.rules import Rule
from hta_sql.errors import AnalysisNotFoundError, LibraryError, QueryError
from hta_sql.library.objects import load_library
from hta_sql.library.user_analyses import ENVIRONMENT, GROUP, library_with
from hta_sql.report.contents import topics
from hta_sql.store.catalog.user_analyses import OWN
from hta_sql.store.disk.digests import with_checksum
from tests.shared_stores import ingest_only
from tests.test_catalog import OWN_CATALOG_BYTES
from tests.user_analyses.folders import ANALYSIS, TRACE, own_macro, write_folder

ROWS = [("job", 0, 7, 25_000, 3), ("job", 0, 9, 10_000, 2)]


def test_the_python_call(store: Path, team: Path) -> None:
    """User analyses have checked parameters and documented columns, like shipped ones."""
    with hta_sql.open(store, analyses=team) as opened:
        assert opened.run("stream_load").rows() == ROWS
        assert opened.run("stream_load_v1", min_kernels=3, ranks=[0]).rows() == ROWS[:1]
        with pytest.raises(hta_sql.ParameterError, match="min_kernels must be an integer"):
            opened.run("stream_load", min_kernels="three")
        about = opened.describe("stream_load")
        assert about.columns[3].unit == "ns"
        assert about.summary.startswith("Device time of each stream")
        assert opened.run("temporal_breakdown").columns


def test_the_views_of_the_catalog(store: Path, team: Path) -> None:
    """A dashboard finds the view in nanoseconds and microseconds, with column descriptions."""
    with hta_sql.open(store, analyses=team) as opened:
        path = opened.catalog_path
        assert opened.sql("FROM stream_load(min_kernels := 3)").rows() == ROWS[:1]
        listed = opened.sql("SELECT topic, summary FROM analyses WHERE name = 'stream_load'").rows()
        assert listed[0][0] == "kernels"
    assert Path(path).stat().st_size < OWN_CATALOG_BYTES
    with duckdb.connect(path, read_only=True) as con:
        assert con.execute("FROM stream_load").fetchall() == ROWS
        assert con.execute("SELECT busy_us FROM us.stream_load").fetchall() == [(25.0,), (10.0,)]
        words = con.execute(
            "SELECT comment FROM duckdb_columns() "
            "WHERE table_name = 'stream_load' AND column_name = 'busy_ns'"
        ).fetchall()
    assert words == [("Sum of the durations of its kernels. [ns]",)]


def test_the_catalog_of_the_store_stays_as_it_is(store: Path, team: Path) -> None:
    """User analyses of a session are in a separate catalog; the store's catalog does not change."""
    with hta_sql.open(store, analyses=team) as opened:
        assert not Path(opened.catalog_path).is_relative_to(store)
    with hta_sql.open(store) as opened:
        assert Path(opened.catalog_path).is_relative_to(store)
        with pytest.raises(AnalysisNotFoundError, match="No analysis 'stream_load'"):
            opened.run("stream_load")
        with pytest.raises(QueryError):
            opened.sql("FROM stream_load")


def test_the_variable(store: Path, team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders in the environment variable are used by default."""
    monkeypatch.setenv(ENVIRONMENT, f"{team}{os.pathsep}")
    with hta_sql.open(store) as opened:
        assert opened.run("stream_load").rows() == ROWS
    with hta_sql.open(store, analyses=()) as opened, pytest.raises(AnalysisNotFoundError):
        opened.run("stream_load")
    monkeypatch.setenv(ENVIRONMENT, "/no/such/folder")
    with pytest.raises(LibraryError, match=f"{ENVIRONMENT} names '/no/such/folder', which is no"):
        hta_sql.open(store)


def test_a_gate_holds_its_columns(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gate rules accept columns of user analyses."""
    monkeypatch.setenv(ENVIRONMENT, str(team))
    rule = Rule(analysis="stream_load", column="busy_ns", max=1)
    assert (rule.about.name, rule.unit) == ("stream_load_v1", "ns")


ENTRY_POINTS = {
    "a package": ("team_sql", ""),
    "a path": ("team_sql:FOLDER", "from pathlib import Path\nFOLDER = Path(__file__).parent\n"),
    "a function": ("team_sql:folders", "def folders():\n    return [__path__[0]]\n"),
}


@pytest.mark.parametrize(
    "kind",
    ["a function", "a package", "a path"],
)
def test_the_entry_point(
    kind: str, store: Path, team: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package provides analyses through an entry point."""
    target, code = ENTRY_POINTS[kind]
    install(tmp_path, target, code, team, monkeypatch)
    with hta_sql.open(store) as opened:
        assert opened.run("stream_load").rows() == ROWS


def test_an_entry_point_that_fails_is_named(
    tmp_path: Path, team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing entry point is named, so that the user knows which package to uninstall."""
    install(tmp_path, "team_sql:folders", "def folders():\n    1 / 0\n", team, monkeypatch)
    with pytest.raises(LibraryError, match=r"entry point team = team_sql:folders .* division"):
        library_with()


def install(
    place: Path, target: str, code: str, team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put a package with an entry point on the import path, as pip would install it."""
    shutil.copytree(team, place / "team_sql")
    (place / "team_sql" / "__init__.py").write_text(code, encoding="utf-8")
    info = place / "team_sql-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: team-sql\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nteam = {target}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(place)
    monkeypatch.delitem(sys.modules, "team_sql", raising=False)


def test_the_option(
    store: Path, team: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands have the option --analyses, and an option for each parameter of a user analysis."""
    own = ("--analyses", str(team))
    call = ("run", str(store), "stream_load", "--min-kernels", "3", "--format", "json")
    assert main([*call, *own]) == 0
    assert [row["stream"] for row in json.loads(capsys.readouterr().out)] == [7]
    assert main(["run", f"--analyses={team}", *call[1:]]) == 0
    assert main(["run", str(store), "stream_load", "--help", *own]) == 0
    assert "Leave out streams with fewer kernels" in capsys.readouterr().out
    assert main(["list", *own]) == 0
    assert "stream_load_v1 " in capsys.readouterr().out
    assert main(["describe", "stream_load", *own]) == 0
    assert f"SQL:       {team}/kernels/stream_load_v1.sql" in capsys.readouterr().out
    assert main(["describe", "lib.whole", *own]) == 0
    assert main(["sql", str(store), "FROM stream_load", "--format", "csv", *own]) == 0
    assert "job,0,7,25000,3" in capsys.readouterr().out
    assert main(["export", str(store), "stream_load", "-o", str(tmp_path), *own]) == 0
    assert (tmp_path / "stream_load.parquet").exists()
    assert main(["run", str(store), "stream_load"]) == 1
    assert main(["list", "--analyses", "/no/such/folder"]) == 2


def test_the_report_has_a_section(team: Path) -> None:
    """The header line ``Report: table`` gives a user analysis a section in the report."""
    found = [s.name for topic in topics(library_with(team)) for s in topic.sections]
    assert "stream_load" in found
    assert "stream_load" not in [s.name for topic in topics(load_library()) for s in topic.sections]


def test_a_report_shows_it(store: Path, team: Path, tmp_path: Path) -> None:
    """The report has a section for the user analysis."""
    page = tmp_path / "page.html"
    assert main(["report", str(store), "-o", str(page), "--analyses", str(team)]) == 0
    assert '<section id="stream_load">' in page.read_text(encoding="utf-8")


def test_a_changed_file_is_seen_by_the_next_session(store: Path, tmp_path: Path) -> None:
    """A changed file takes effect in the next session, because nothing is cached."""
    write_folder(tmp_path)
    with hta_sql.open(store, analyses=tmp_path) as opened:
        assert len(opened.run("stream_load")) == 2
    edited = ANALYSIS.replace("l.kernel_count >= min_kernels", "l.kernel_count > min_kernels + 1")
    write_folder(tmp_path, text=edited)
    with hta_sql.open(store, analyses=tmp_path) as opened:
        assert len(opened.run("stream_load")) == 1


def test_it_travels_to_another_process(store: Path, team: Path) -> None:
    """A pickled store opens in another process with the same user analyses."""
    with hta_sql.open(store, analyses=team) as opened:
        copied = pickle.loads(pickle.dumps(opened))  # noqa: S301 - our own
        assert copied.run("stream_load").rows() == ROWS
        copied.close()


def test_a_sandbox_knows_it(store: Path, team: Path) -> None:
    """Sandboxed queries may use the views and macros of user analyses."""
    with hta_sql.TraceStore(store, safe=True, analyses=team) as opened:
        assert opened.sql("FROM stream_load").rows() == ROWS


def test_a_store_that_carries_it(team: Path, tmp_path: Path) -> None:
    """``hta-sql catalog --analyses`` adds user analyses to the store's shared catalog."""
    store = tmp_path / "job.store"
    ingest_only(TRACE, store, run="job")
    assert main(["catalog", str(store), "--analyses", str(team)]) == 0
    assert shared_rows(store) == ROWS
    ingest_only(TRACE, store, run="more")
    assert shared_rows(store) == [*ROWS, *(("more", *row[1:]) for row in ROWS)]
    with hta_sql.open(store) as opened:
        assert Path(opened.catalog_path).is_relative_to(store)
        assert len(opened.sql("FROM stream_load")) == 4
    with hta_sql.open(store, analyses=team) as opened:
        assert Path(opened.catalog_path).is_relative_to(store)
        assert len(opened.run("stream_load")) == 4
    assert main(["catalog", str(store), "--no-analyses"]) == 0
    assert not (store / OWN).exists()
    with pytest.raises(duckdb.CatalogException):
        shared_rows(store)


def shared_rows(store: Path) -> list[tuple[object, ...]]:
    """Query a user analysis in the shared catalog alone, as a BI tool does."""
    with duckdb.connect(str(store / "catalog.duckdb"), read_only=True) as con:
        return con.execute("FROM stream_load ORDER BY ALL").fetchall()


def test_what_no_longer_fits_is_left_out(
    team: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An outdated user analysis in a store is ignored with a warning, and ingests still work."""
    store = tmp_path / "job.store"
    ingest_only(TRACE, store, run="job")
    assert main(["catalog", str(store), "--analyses", str(team)]) == 0
    texts = json.loads((store / OWN).read_bytes())["texts"]
    older = {
        path: text.replace("lib.scoped_gpu_ops", "lib.gone_since") for path, text in texts.items()
    }
    (store / OWN).write_bytes(with_checksum({"texts": older}))
    ingest_only(TRACE, store, run="more")
    assert "the user analyses in this store are ignored" in caplog.text
    assert "gone_since" in caplog.text
    with hta_sql.open(store) as opened:
        assert opened.runs() == ["job", "more"]


def test_two_folders(store: Path, team: Path, tmp_path: Path) -> None:
    """Several folders are used together, and a folder that is named twice counts once."""
    other = write_folder(tmp_path, name="stream_use")
    own_macro(other, "whole_number")
    with hta_sql.open(store, analyses=[team, other, str(team)]) as opened:
        assert opened.run("stream_use").rows() == opened.run("stream_load").rows() == ROWS
