"""Tests that a new column or vendor only needs lines in CSV files and SQL comments.

Each test works on its own copy of sql/ next to the package, in a separate process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent

ASK = """
import json, sys
import hta_sql
traces, store, *queries = sys.argv[1:]
with hta_sql.ingest(traces, store, run="job") as opened:
    print(json.dumps([opened.sql(query).rows() for query in queries]))
"""


class Copy:
    """The package and the generators, linked next to a private copy of sql/."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sql = folder / "sql"
        shutil.copytree(ROOT / "sql", self.sql)
        for name in ("hta_sql", "docs"):
            (folder / name).symlink_to(ROOT / name)

    def edit(self, relative: str, old: str, new: str) -> None:
        """Replace the first occurrence of a string in a file; the string must exist."""
        path = self.sql / relative
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def add_line(self, relative: str, line: str) -> None:
        """Append a line to a file."""
        with (self.sql / relative).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def run(self, *arguments: str) -> str:
        """Run Python with the copy on its path, and return the output."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, events: list[dict[str, Any]], *queries: str) -> list[list[list[object]]]:
        """Ingest some events, and return the rows of each query."""
        trace = self.folder / "trace.json"
        trace.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
        store = self.folder / "job.store"
        answers: list[list[list[object]]] = json.loads(
            self.run("-c", ASK, str(trace), str(store), *queries)
        )
        return answers


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """Return a copy of the library that a test can change."""
    return Copy(tmp_path)


def event(category: str, name: str, ts: float, dur: float, **args: object) -> dict[str, Any]:
    """Return a complete event on thread 1 of process 1."""
    place = {"pid": 1, "tid": 1, "ts": ts, "dur": dur}
    return {"ph": "X", "cat": category, "name": name, **place, "args": args}


def test_a_column_more(copy: Copy) -> None:
    """A line in arguments.csv and a documented column suffice to extract and query an argument."""
    copy.add_line("ingest/arguments.csv", "cluster dim,cluster_dim,id,gpu_ops,,,,,,,")
    table = "tables/gpu_ops.sql"
    copy.edit(
        table,
        "--   graph_id ",
        "--   cluster_dim  BIGINT [count]  Blocks of a cluster.\n--   graph_id ",
    )
    copy.edit(table, "    x.graph_id,", "    x.cluster_dim,\n    x.graph_id,")
    copy.run("-m", "docs.generate.stored_columns", str(copy.sql / "stored_columns.json"))
    kernels = [
        event("kernel", "a", 0, 5, **{"cluster dim": 4, "grid": [1, 1, 1]}),
        event("kernel", "b", 9, 5, **{"cluster dim": "four"}),
    ]
    columns, texts, arguments = copy.ask(
        kernels,
        "SELECT name, cluster_dim FROM gpu_ops ORDER BY ts",
        "SELECT args FROM event_args",
        "SELECT argument, value_json FROM event_arguments(arguments := ['cluster dim'])",
    )
    assert columns == [["a", 4], ["b", None]]
    assert texts == [['{"cluster dim":"four"}']]
    assert arguments == [["cluster dim", "4"], ["cluster dim", '"four"']]


def test_a_vendor_more(copy: Copy) -> None:
    """Lines in two CSV files make a vendor's device events, calls and collectives known."""
    for line in (
        "acme,category,acme_tile_op,,gpu_ops,kernel,true",
        "acme,category,acme_dma,,gpu_ops,memcpy,true",
        "acme,category,acme_api,,runtime_calls,,",
        "acme,call_prefix,acme,,,,",
        "acme,device_type,Acme TPU,9,,,",
    ):
        copy.add_line("tables/vendors.csv", line)
    copy.add_line("ingest/kernel_classes.csv", "30,^acl_ring,communication,all_reduce,acme")
    events = [
        event("acme_api", "acmeSubmit", 0, 2, correlation=1),
        event("acme_tile_op", "acl_ring_sum", 5, 9, correlation=1),
        event("acme_tile_op", "gemm", 20, 9),
        event("acme_dma", "in", 40, 1),
    ]
    ops, calls, types = copy.ask(
        events,
        "SELECT name, kind, class, collective, stream, launch_id FROM gpu_ops ORDER BY ts",
        "SELECT name, category FROM runtime_calls",
        "SELECT device_type FROM device_type()",
    )
    assert ops == [
        ["acl_ring_sum", "kernel", "communication", "all_reduce", 1, 0],
        ["gemm", "kernel", "computation", None, 1, None],
        ["in", "memcpy", "memory", None, 1, None],
    ]
    assert calls == [["acmeSubmit", "acme_api"]]
    assert types == [["Acme TPU"]]
    public = (
        "from hta_sql.exports.redaction import public as p; print(p.patterns('runtime')[0].pattern)"
    )
    assert "acme" in copy.run("-c", public)
