"""Tests that charts of many ranks stay small, names are never markup, and files open offline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd
import pytest
import vl_convert
from markupsafe import Markup

import hta_sql
from hta_sql import charts
from hta_sql.charts import export, page
from hta_sql.charts.communication.what_if import saving_label
from hta_sql.charts.drawing import style
from hta_sql.errors import ParameterError
from hta_sql.hta.trace_analysis import TraceAnalysis
from hta_sql.text import duration_text
from tests.drawn_marks import charts_in, picture_marks, size_of_png
from tests.report_pages import kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from hta_sql.store.query.trace_store import TraceStore

PAYLOADS = [
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "quotes \" ' ` \\",
    "\x1b[31mred\x00\n\r\t",
    "\u202egnp.exe\u2066",
    "]]>&amp;&lt;",
    "x" * 10_000 + "a",
    "x" * 10_000 + "b",
]


def test_names_are_escaped_and_stay_different() -> None:
    """Control characters are escaped, long names are shortened, and names stay distinct."""
    readable = style.readable(pd.DataFrame({"name": PAYLOADS, "rank": range(len(PAYLOADS))}))
    names = list(readable["name"])
    assert len(set(names)) == len(PAYLOADS)
    assert all(name.isprintable() for name in names)
    assert max(map(len, names)) <= style.NAME_CHARACTERS + 4
    assert names[3] == "\\x1b[31mred\\x00\\n\\r\\t"
    assert list(readable["rank"]) == list(range(len(PAYLOADS)))


def spec_in(page_text: str) -> dict[str, Any]:
    """Return the single chart of a page."""
    (chart,) = charts_in(page_text).values()
    return chart


def drawn_names(spec: dict[str, Any]) -> set[str]:
    """Return all names in the data of a chart."""
    return {row["lane"] for rows in spec["datasets"].values() for row in rows}


@pytest.mark.parametrize(
    "suffix",
    [".html", ".svg", ".png", ".json"],
)
def test_hostile_names_are_text_in_every_format(
    suffix: str, ingest_trace: Callable[..., TraceStore], tmp_path: Path
) -> None:
    """A kernel name is never interpreted as markup."""
    store = ingest_trace([kernel(number, name) for number, name in enumerate(PAYLOADS)])
    path = tmp_path / f"chart{suffix}"
    charts.save(store.run("gpu_kernels_by_name").chart(), path, PAYLOADS[0])
    content = path.read_bytes()
    if suffix == ".svg":
        assert picture_marks(content)["rect"] == len(PAYLOADS)
        tags = {element.tag.partition("}")[2] for element in ET.fromstring(content).iter()}  # noqa: S314 - our own picture
        assert not tags & {"script", "img", "foreignObject"}
    elif suffix == ".html":
        text = content.decode()
        assert "<img src=x" not in text
        assert text.count("</script>") == 3
        assert "&lt;/script&gt;&lt;img" in text
        assert len(drawn_names(spec_in(text))) == len(PAYLOADS)
    elif suffix == ".json":
        names = drawn_names(json.loads(content))
        assert PAYLOADS[0] in names
        assert len(names) == len(PAYLOADS)
    else:
        # The height fits all bars that the other formats have.
        assert size_of_png(content)[1] > export.SCALE * 20 * len(PAYLOADS)


def test_the_scripts_of_a_page_are_put_together_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scripts are bundled once, after their licenses, cached by version, and replaced if broken."""
    monkeypatch.setattr(page, "cache_folder", lambda: tmp_path)
    made: list[str] = []

    def make(snippet: str) -> str:
        made.append(snippet)
        return "let ä = 1; // </script>"

    monkeypatch.setattr(vl_convert, "javascript_bundle", make)
    fresh = page.bundle.__wrapped__
    expected = f"/*!\n{page._asset('third_party_notices.txt')}*/\n{{let ä = 1; // <\\/script>\n}}"
    assert fresh() == expected
    assert fresh() == expected
    assert len(made) == 1
    (kept,) = (tmp_path / "scripts").iterdir()
    assert version("vl-convert-python") in kept.name
    for broken in (kept.read_bytes()[:-3], b"", b"\xff\xff"):
        kept.write_bytes(broken)
        assert fresh() == expected
    assert len(made) == 4
    monkeypatch.setattr(page, "cache_folder", lambda: tmp_path / "no" / kept.name)
    (tmp_path / "no").write_text("a file where a folder should be")
    assert fresh() == expected


def test_a_page_reaches_nothing_outside() -> None:
    """Only the page's own scripts, identified by their hashes, may run; nothing is fetched."""
    text = page.page_of("title", Markup("<main></main>"))
    policy = text.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    assert policy.startswith("default-src 'none'")
    assert policy.count("'sha256-") == 2
    assert "'unsafe-inline'" not in policy.partition("script-src")[2]


def test_results_know_their_chart(tiny_store: TraceStore) -> None:
    """result.chart() draws the analysis's chart; an unknown option is an error that names it."""
    result = tiny_store.run("temporal_breakdown")
    assert (
        result.chart(percent=True).to_dict()["title"]["text"] == "Where the time of each GPU goes"
    )
    with pytest.raises(ParameterError, match="percentage"):
        result.chart(percentage=True)


def test_launches_are_counted_in_sql(ingest_trace: Callable[..., TraceStore]) -> None:
    """A result with one row per launch is drawn from the histograms of the same ranks.

    This works even if the store has been closed since.
    """
    store = ingest_trace({0: "launch_outliers.json", 1: "graph_launch.json"})
    result = store.run("cuda_kernel_launch_stats", ranks=[1])
    bins = store.run("launch_histograms", ranks=[1])
    assert len(result) > 0
    store.close()
    assert result.chart().to_dict() == bins.chart().to_dict()


def test_a_link_is_drawn_through_and_a_device_is_written_into(
    tiny_store: TraceStore, tmp_path: Path
) -> None:
    """A chart is written through a symlink or into a pipe, and never replaces either by a file."""
    chart = tiny_store.run("temporal_breakdown").chart()
    target, link = tmp_path / "target.svg", tmp_path / "link.svg"
    target.write_text("")
    link.symlink_to(target)
    charts.save(chart, link)
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8").startswith("<svg")
    pipe = tmp_path / "pipe.svg"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_text, "utf-8")
        charts.save(chart, pipe)
        assert read.result().startswith("<svg")
    assert pipe.is_fifo()


def test_files_that_cannot_be_drawn_into_are_named(tiny_store: TraceStore, tmp_path: Path) -> None:
    """An unknown suffix is an error that names the supported ones, and no file is created."""
    chart = tiny_store.run("temporal_breakdown").chart()
    with pytest.raises(ParameterError, match=r"\.svg"):
        charts.save(chart, tmp_path / "chart.gif")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def empty_store(
    tmp_path_factory: pytest.TempPathFactory, trace_path: Callable[[str], Path]
) -> Iterator[TraceStore]:
    """Ingest a trace without events and open its store."""
    folder = tmp_path_factory.mktemp("empty") / "job.store"
    with hta_sql.ingest({0: str(trace_path("no_events.json"))}, folder, run="run") as store:
        yield store


@pytest.mark.parametrize("name", charts.FIGURES)
def test_no_rows_are_a_sentence(name: str, empty_store: TraceStore) -> None:
    """A result without rows is drawn as a sentence with the reason, instead of empty axes."""
    result = empty_store.run(name)
    spec = result.chart().to_dict()
    (rows,) = spec["datasets"].values()
    why = "No verdict is possible: " if len(result) else f"Nothing to show: {name} needs "
    assert rows[0]["text"].startswith(why)


def test_names_that_are_cut_to_the_same_are_told_apart() -> None:
    """Two kernels whose shortened names differ only in the middle are two bars."""
    names = [f"{'a' * 200}{number}{'b' * 200}" for number in range(3)]
    shown = style.labels([*names, names[0], "short"])
    assert len(set(shown)) == 4
    assert shown[3] == shown[0]
    assert shown[4] == "short"


def test_hta_methods_save_their_charts(ingest_trace: Callable[..., TraceStore]) -> None:
    """visualize=True writes one page per chart into a folder inside the store."""
    traces = {0: "two_ranks_0.json", 1: "two_ranks_1.json", 2: "launch_outliers.json"}
    store = ingest_trace(traces)
    with TraceAnalysis(store=store.path) as analysis:
        analysis.get_temporal_breakdown(visualize=True)
        analysis.get_gpu_kernel_breakdown(visualize=True)
        analysis.get_idle_time_breakdown(ranks=[2], visualize=True, visualize_pctg=False)
        analysis.get_comm_comp_overlap(visualize=True)
        analysis.get_cuda_kernel_launch_stats(ranks=[2], visualize=True)
    pages = {path.stem: path.read_text(encoding="utf-8") for path in store.path.glob("charts/*")}
    assert set(pages) == {
        "temporal_breakdown",
        "gpu_kernel_types",
        "gpu_kernels_by_name",
        "idle_time_breakdown",
        "comm_comp_overlap",
        "cuda_kernel_launch_stats",
    }
    for name, text in pages.items():
        for rows in spec_in(text)["datasets"].values():
            # Not the sentence that is shown if there is nothing to draw.
            assert rows, name
            assert "text" not in rows[0], name
        assert "Content-Security-Policy" in text, name


@pytest.mark.parametrize("module", ["altair", "vl_convert"])
def test_a_missing_library_is_named_with_its_remedy(module: str, tiny_store: TraceStore) -> None:
    """A missing library is a one-line error that names the packages to install."""
    lines = [
        f"import sys; sys.modules[{module!r}] = None",
        "from hta_sql.cli import main",
        f"sys.exit(main(['run', {str(tiny_store.path)!r}, 'temporal_breakdown', '--chart', 'a.png']))",
    ]
    done = subprocess.run(  # noqa: S603 - our own lines
        [sys.executable, "-c", "; ".join(lines)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: Charts need {module}, which is not installed: "
        "pip install altair vl-convert-python\n"
    )


def test_runs_are_not_mixed(tiny_store: TraceStore) -> None:
    """Each run has its own panels, titled with the run name."""
    spec = tiny_store.run("kernels_across_ranks").chart().to_dict()
    titles = [panel["title"]["text"] for panel in spec["vconcat"]]
    assert titles
    assert {title.partition(", run ")[2] for title in titles} == {"base", "test"}
    few = tiny_store.run("temporal_breakdown").chart().to_dict()
    assert few["hconcat"][0]["layer"][0]["encoding"]["y"]["title"] == "Run / Rank"


def test_the_wheel_scrolls_the_page(tmp_path: Path) -> None:
    """Charts zoom only with Ctrl, including charts with altair's own zoom."""
    chart = alt.Chart(style.data(pd.DataFrame({"x": [1, 2]}))).mark_bar().encode(x="x:Q")
    both = alt.vconcat(chart.interactive(), chart.add_params(style.zoom("other")))
    charts.save(both, tmp_path / "chart.json")
    params = json.loads((tmp_path / "chart.json").read_text())["params"]
    assert [parameter["select"]["zoom"] for parameter in params] == [style.ZOOM] * 2


def test_labels_of_runs_with_long_names_stay_apart() -> None:
    """A common prefix of all runs is shortened or omitted before the part that differs."""
    stem = "an_experiment_with_a_name_that_no_axis_has_room_for"

    assert style.short_runs(["base", "test", "base"]) == {"base": "base", "test": "test"}
    assert style.short_runs([f"{stem}_base", f"{stem}_test"]) == {
        f"{stem}_base": "an_experimen…om_for_base",
        f"{stem}_test": "an_experimen…om_for_test",
    }
    # Only the middle differs, so the common prefix is omitted.
    assert style.short_runs([f"{stem}_1_{stem}", f"{stem}_2_{stem}"]) == {
        f"{stem}_1_{stem}": "…1_an_experi…as_room_for",
        f"{stem}_2_{stem}": "…2_an_experi…as_room_for",
    }


@pytest.mark.parametrize(
    "name", ["dp.0", "a[1]", "it's", 'say "b"', "c\\d", "'];while(1){};//", "\u2028"]
)
def test_any_name_of_a_group_is_a_part_of_a_bar(name: str) -> None:
    """Any group name can label a part of a bar, even if it looks like a path or an expression."""
    row = {"run": "job", "rank": 0, "part": "group", "kind": None, "pg_desc": name, "pg_name": "0"}
    rows = [row, row | {"pg_desc": "plain"}]
    table = pd.DataFrame(rows).assign(
        exposed_transfer_ns=[3000, 1000], exposed_unmatched_ns=0, exposed_wait_ns=0
    )
    drawn = charts.FIGURES["process_group_costs"](table).to_dict()
    assert f"{name}: transfer" not in json.dumps(drawn["datasets"])
    picture = ET.fromstring(vl_convert.vegalite_to_svg(drawn))  # noqa: S314 - our own
    assert {"75%", "25%"} <= {mark.text for mark in picture.iter()}


def test_times_have_three_digits_of_which_zeros_are_some() -> None:
    """Times have three digits, and a value that rounds to 1,000 moves to the next unit."""
    times = [1_900_000, 1_910_000, 10_000_000, 10_100_000, 1_125_000, 999_600, 37, 0, -2_500, 2e12]
    assert [duration_text(ns) for ns in times] == [
        *("1.90 ms", "1.91 ms", "10.0 ms", "10.1 ms", "1.13 ms", "1.00 ms", "37 ns", "0 ns"),
        *("-2.50 µs", "2,000 s"),
    ]


def test_a_what_if_chart_states_the_bound_of_each_saving() -> None:
    """Labels say at least, at most or about; a lower bound of 0 % is not a saving of 0 %."""
    row: dict[Hashable, Any] = {"replayed_step_ns": 40_000_000, "replayed_ns": 40_000_000}
    labels = {
        (bound, saved): saving_label({**row, "bound": bound, "saved_pct": saved})
        for bound, saved in [("lower", 0.0), ("lower", 5.0), ("upper", 5.0), ("estimate", 5.0)]
    }
    assert labels == {
        ("lower", 0.0): "at most 40.0 ms, saving unknown",
        ("lower", 5.0): "at most 40.0 ms, at least 5 % less",
        ("upper", 5.0): "at least 40.0 ms, at most 5 % less",
        ("estimate", 5.0): "40.0 ms, about 5 % less",
    }
