"""Execution traces: reading next to a trace, refusal, and the nodes with events."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql.errors import TraceFormatError
from hta_sql.exports.redaction.names import Redactor
from hta_sql.exports.redaction.stores import redact_store
from hta_sql.store.disk.folder import store_folder
from hta_sql.traces.execution_trace import is_execution_trace, read_execution_trace
from hta_sql.traces.peek import peek

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

ROOT = Path(__file__).parents[2]
FILES = ROOT / "tests" / "traces" / "execution_traces"
SHARED = ROOT.parent / "shared"
PARAM = SHARED / "traces" / "param_execution_trace"
CONVNET = "convnet_memtimeline"

OUTCOMES = "SELECT outcome, node_count FROM execution_trace_joins() ORDER BY ALL"


def nodes() -> dict[str, Any]:
    """Return the execution trace of the golden tests."""
    value: dict[str, Any] = json.loads((FILES / "nodes.json").read_text(encoding="utf-8"))
    return value


def pair(folder: Path, trace: Path, execution_trace: Path, rank: int = 0) -> TraceStore:
    """Ingest a trace and the execution trace of the same rank from one folder."""
    folder.mkdir(exist_ok=True)
    for file, name in ((trace, f"rank{rank}"), (execution_trace, f"rank{rank}_et")):
        shutil.copy(file, folder / (name + "".join(file.suffixes[-2:])))
    return hta_sql.ingest(str(folder), str(folder / "job.store"), run="job", jobs=1)


def test_an_execution_trace_lies_next_to_the_trace_of_its_rank(tmp_path: Path) -> None:
    """The name states the rank; events and nodes are of one run."""
    folder = tmp_path / "job"
    folder.mkdir()
    shutil.copy(FILES / "trace.json", folder / "rank0.json")
    with gzip.open(folder / "rank0_et.json.gz", "wb") as file:
        file.write(json.dumps(nodes()).encode())
    with hta_sql.ingest(str(folder), str(tmp_path / "store"), run="job", jobs=1) as store:
        query = "SELECT DISTINCT run, rank FROM et_nodes UNION SELECT run, rank FROM cpu_ops"
        assert store.sql(query).rows() == [("job", 0)]
        assert ("joined", 5) in store.sql(OUTCOMES).rows()


def test_nodes_of_the_first_schema_have_the_same_rows(tmp_path: Path) -> None:
    """PyTorch 2.0 stored everything in the node."""
    value = nodes()
    for node in value["nodes"]:
        node |= {item["name"]: item["value"] for item in node.pop("attrs")}
        node["parent"] = node.pop("ctrl_deps")
        for side in ("input", "output"):
            stated = node[f"{side}s"]
            node |= {f"{side}_shapes": stated["shapes"], f"{side}_types": stated["types"]}
            node[f"{side}s"] = stated["values"]
    old = tmp_path / "old.json"
    old.write_text(json.dumps({**value, "schema": "1.0.1"}), encoding="utf-8")
    found = []
    for name, path in (("a", FILES / "nodes.json"), ("b", old)):
        with hta_sql.ingest(str(path), str(tmp_path / name), run="job", jobs=1) as store:
            tables = ("et_nodes", "et_tensors")
            found.append([store.sql(f"FROM {table} ORDER BY ALL").rows() for table in tables])
    assert found[0] == found[1]
    assert [len(rows) for rows in found[0]] == [9, 17]


def test_nodes_without_an_event_of_their_name_are_of_another_numbering(tmp_path: Path) -> None:
    """One of three nodes whose id is in the trace has the name of its event, which is a coincidence."""
    trace = json.loads((FILES / "trace.json").read_text(encoding="utf-8"))
    for event in trace["traceEvents"][1:]:
        event["name"] = "aten::other"
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace), encoding="utf-8")
    with pair(tmp_path / "job", path, FILES / "nodes.json") as store:
        assert store.sql(OUTCOMES).rows() == [
            ("ids of another numbering", 6),
            ("no event with its id", 1),
            ("process or thread", 2),
        ]


@pytest.mark.parametrize(
    ("cut", "node_count"), [("ctrl_deps", 5), (', "finish_ts"', 9), ("\n], ", 9)]
)
def test_of_a_file_that_is_cut_off_the_complete_nodes_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, cut: str, node_count: int
) -> None:
    """A job that was killed while writing leaves such a file."""
    text = (FILES / "nodes.json").read_text(encoding="utf-8")
    end = [n for n in range(len(text)) if text.startswith(cut, n)][5 if cut == "ctrl_deps" else 0]
    path = tmp_path / "et.json"
    path.write_text(text[:end], encoding="utf-8")
    with hta_sql.ingest(str(path), str(tmp_path / "store"), run="job", jobs=1) as store:
        assert store.sql("SELECT count(*) FROM et_nodes").rows() == [(node_count,)]
        damaged = store.sql("SELECT reason FROM quarantine").rows()
    is_whole = cut.startswith(", ")
    assert bool(damaged) is not is_whole
    assert ("is damaged" in caplog.text) is not is_whole


def test_values_of_the_wrong_type_are_null(tmp_path: Path) -> None:
    """A node without a number is skipped; other invalid values are NULL."""
    value = nodes()
    value["nodes"][4] |= {"inputs": 3, "outputs": {"values": [[1, 2, 3, 4, "5", "cpu"]]}}
    value["nodes"][5] |= {"id": "8"}
    value["nodes"][6] |= {"ctrl_deps": 1 << 70, "name": 5}
    value["nodes"].append("text")
    path = tmp_path / "et.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    with hta_sql.ingest(str(path), str(tmp_path / "store"), run="job", jobs=1) as store:
        query = (
            "SELECT node_id, parent_node_id, name, inputs FROM et_nodes WHERE node_id IN (3, 7, 8)"
        )
        assert store.sql(query).rows()[0] == (3, 2, "aten::linear", None)
        assert store.sql(query).rows()[1][:3] == (7, None, None)


def test_an_unchanged_execution_trace_is_not_read_again(tmp_path: Path) -> None:
    """The store has its rows only once."""
    pair(tmp_path / "job", FILES / "trace.json", FILES / "nodes.json").close()
    with pair(tmp_path / "job", FILES / "trace.json", FILES / "nodes.json") as store:
        assert store.sql("SELECT count(*) FROM et_nodes").rows() == [(9,)]


def test_redaction_keeps_the_figures_and_no_text_of_the_user(tmp_path: Path) -> None:
    """Names of PyTorch's operators are preserved; annotations and values of inputs are hashed."""
    value = nodes()
    value["nodes"][8] |= {"name": "## secret model ##"}
    value["nodes"][8]["inputs"]["values"].append('{"pg_desc": "secret group"}')
    path = tmp_path / "et.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    query = "SELECT * EXCLUDE (run, name, device) FROM execution_trace_producers() ORDER BY ALL"
    with pair(tmp_path / "job", FILES / "trace.json", path) as store:
        expected, outcomes = store.sql(query).rows(), store.sql(OUTCOMES).rows()
        redact_store(
            store_folder(str(tmp_path / "job" / "job.store")), tmp_path / "copy", Redactor()
        )
    with hta_sql.open(str(tmp_path / "copy")) as copy:
        assert copy.sql(query).rows() == expected
        assert copy.sql(OUTCOMES).rows() == outcomes
        assert "secret" not in str(
            [copy.sql("FROM et_nodes").rows(), copy.sql("FROM et_tensors").rows()]
        )


CHAKRA = {
    "schema": "1.1.1-chakra.0.0.4",
    "nodes": [{"id": 1, "name": "aten::mm", "ctrl_deps": [0], "data_deps": [], "rf_id": 3}],
}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rank0_linked.json", json.dumps(CHAKRA).encode()),
        ("rank0.et", b"\x07\n\x050.0.4\x1a\x08\x01\x12\x08aten::mm"),
    ],
)
def test_exports_of_chakra_are_refused_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    """The message says what to pass instead."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TraceFormatError, match=r"Chakra.*ExecutionTraceObserver"):
        peek(str(path))


def test_a_file_without_nodes_is_no_execution_trace(tmp_path: Path) -> None:
    """The message names the file."""
    path = tmp_path / "et.json"
    path.write_text('{"schema": "1.1.1", "pid": 1}', encoding="utf-8")
    assert not is_execution_trace(path.read_bytes())
    with pytest.raises(TraceFormatError, match=r"et\.json"):
        read_execution_trace(str(path), lambda _: None)


@pytest.mark.skipif(not PARAM.is_dir(), reason="the public files are not beside the repository")
def test_a_real_pair_of_one_observer_is_joined(tmp_path: Path) -> None:
    """All calls of PyTorch 2.13 have their event."""
    execution_trace = (
        SHARED / "expected" / "torch_key_averages" / CONVNET / "execution_trace.json.gz"
    )
    trace = SHARED / "traces" / "torch_cpu" / CONVNET / "trace.json.gz"
    with pair(tmp_path / "job", trace, execution_trace) as store:
        assert store.sql(OUTCOMES).rows() == [("joined", 598), ("process or thread", 2)]


@pytest.mark.skipif(not PARAM.is_dir(), reason="the public files are not beside the repository")
def test_a_real_pair_of_two_numberings_is_not_joined_by_chance(tmp_path: Path) -> None:
    """218 of 928 nodes have an event with their id and name; none has the sequence number of that event."""
    with pair(
        tmp_path / "job", PARAM / "linear_kineto.json.gz", PARAM / "linear_et.json.gz"
    ) as store:
        assert store.sql(OUTCOMES).rows() == [
            ("ids of another numbering", 928),
            ("process or thread", 3),
        ]
