"""Tests that HTA's methods use pinned analysis versions, so that newer ones change no result."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from hta_sql.library.objects import load_library
from tests.golden_cases import TRACES
from tests.test_extending_the_library import ROOT, Copy

ANALYSES = {
    "temporal_breakdown": "timeline",
    "comm_comp_overlap": "communication",
    "queue_full_time": "launch",
    "idle_time_breakdown": "timeline",
    "gpu_kernel_types": "kernels",
}

CALLS = """
import sys
from hta_sql.hta.trace_analysis import TraceAnalysis
job = TraceAnalysis(trace_files={0: sys.argv[1]}, store=sys.argv[2])
print(job.get_temporal_breakdown(visualize=False).to_csv())
print(job.get_comm_comp_overlap(visualize=False).to_csv())
print(job.get_time_spent_blocked_on_full_queue({0: job.get_queue_length_time_series([0])[0]}, 1).to_csv())
print(job.get_idle_time_breakdown([0], visualize=False)[0].to_csv())
print([frame.to_csv() for frame in job.get_gpu_kernel_breakdown(visualize=False)])
"""


def test_new_versions_change_no_answer_of_hta(tmp_path: Path) -> None:
    """New versions without rows change the default of SQL and Python, but not HTA's methods."""
    copy = Copy(tmp_path)
    trace = str(TRACES / "recorded_with_everything.json")
    before = copy.run("-c", CALLS, trace, str(tmp_path / "before.store"))
    for name in ANALYSES:
        (path,) = copy.sql.glob(f"analyses/*/{name}_v1.sql")
        text = path.read_text(encoding="utf-8").replace(f"{name}_v1(", f"{name}_v2(")
        empty = re.sub(r"\nORDER BY [^\n]*;?\s*$", "\nLIMIT 0;\n", text)
        assert empty != text
        path.with_name(f"{name}_v2.sql").write_text(empty, encoding="utf-8")
    after = copy.run("-c", CALLS, trace, str(tmp_path / "after.store"))
    assert after == before
    asked = "import sys, hta_sql; print(len(hta_sql.open(sys.argv[1]).run('temporal_breakdown')))"
    assert copy.run("-c", asked, str(tmp_path / "after.store")).strip() == "0"


def test_hta_names_no_analysis_without_its_version() -> None:
    """Each call to an analysis in hta_sql.hta, in Python or SQL, states its version."""
    names = {analysis.base_name for analysis in load_library().newest()}
    called = {"result", "_told", "run", "run_over"}
    for path in (ROOT / "hta_sql" / "hta").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(func=ast.Attribute(attr=attr), args=[ast.Constant(value=name), *_]):
                    assert attr not in called or name not in names, f"{path}: {name}"
        assert not names.intersection(re.findall(r"FROM (\w+)\(", text)), path
