"""Execution traces are read, refused if they are invalid, and joined with trace events."""

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
from hta_sql.traces import execution_trace
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
    """Return the execution trace that the golden tests use."""
    value: dict[str, Any] = json.loads((FILES / "nodes.json").read_text(encoding="utf-8"))
    return value


def pair(folder: Path, trace: Path, observed: Path, rank: int = 0) -> TraceStore:
    """Copy a trace and an execution trace of one rank into a folder, and ingest the folder."""
    folder.mkdir(exist_ok=True)
    for file, name in ((trace, f"rank{rank}"), (observed, f"rank{rank}_et")):
        shutil.copy(file, folder / (name + "".join(file.suffixes[-2:])))
    return hta_sql.ingest(str(folder), str(folder / "job.store"), run="job", jobs=1)


def test_an_execution_trace_lies_next_to_the_trace_of_its_rank(tmp_path: Path) -> None:
    """An execution trace joins the trace whose rank is in its file name."""
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
    """Nodes in the schema of PyTorch 2.0, which has no attribute list, give the same rows."""
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
    """Nodes are not joined by id if none of them has the name of the event with its id."""
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
    """A truncated execution trace is read up to its last complete node."""
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
    """A node without an id is skipped, and other values of the wrong type are NULL."""
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
    """Ingesting an unchanged execution trace again does not duplicate its rows."""
    pair(tmp_path / "job", FILES / "trace.json", FILES / "nodes.json").close()
    with pair(tmp_path / "job", FILES / "trace.json", FILES / "nodes.json") as store:
        assert store.sql("SELECT count(*) FROM et_nodes").rows() == [(9,)]


def test_redaction_keeps_the_figures_and_no_text_of_the_user(tmp_path: Path) -> None:
    """Redaction preserves operator names and figures, but removes strings of the user."""
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
    """The error for a Chakra export says which file to pass instead."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TraceFormatError, match=r"Chakra.*ExecutionTraceObserver"):
        peek(str(path))


def test_a_file_without_nodes_is_no_execution_trace(tmp_path: Path) -> None:
    """The error for a JSON file without nodes names the file."""
    path = tmp_path / "et.json"
    path.write_text('{"schema": "1.1.1", "pid": 1}', encoding="utf-8")
    assert not is_execution_trace(path.read_bytes())
    with pytest.raises(TraceFormatError, match=r"et\.json"):
        read_execution_trace(str(path), lambda _: None)


@pytest.mark.skipif(not PARAM.is_dir(), reason="the public files are not beside the repository")
def test_a_real_pair_of_one_observer_is_joined(tmp_path: Path) -> None:
    """In a pair of files recorded by PyTorch 2.13, every operator node is joined with an event."""
    observed = SHARED / "expected" / "torch_key_averages" / CONVNET / "execution_trace.json.gz"
    trace = SHARED / "traces" / "torch_cpu" / CONVNET / "trace.json.gz"
    with pair(tmp_path / "job", trace, observed) as store:
        assert store.sql(OUTCOMES).rows() == [("joined", 598), ("process or thread", 2)]


@pytest.mark.skipif(not PARAM.is_dir(), reason="the public files are not beside the repository")
def test_a_real_pair_of_two_numberings_is_joined_by_order(tmp_path: Path) -> None:
    """All 928 nodes are joined by order, although ids and names would join 218 incorrectly.

    All 201 nodes with a sequence number have the sequence number of their event.
    """
    with pair(
        tmp_path / "job", PARAM / "linear_kineto.json.gz", PARAM / "linear_et.json.gz"
    ) as store:
        assert store.sql(OUTCOMES).rows() == [("joined", 928), ("process or thread", 3)]
        query = (
            "SELECT count(*), count(*) FILTER (c.sequence_number = n.sequence_number) FROM et_nodes AS n "
            "JOIN lib.execution_trace_events(NULL, NULL) AS e ON e.node_id = n.node_id "
            "JOIN cpu_ops AS c ON c.event_id = e.event_id WHERE n.sequence_number > 0"
        )
        assert store.sql(query).rows() == [(201, 201)]


@pytest.mark.skipif(not PARAM.is_dir(), reason="the public files are not beside the repository")
def test_a_real_pair_of_two_programs_is_not_joined(tmp_path: Path) -> None:
    """Files of different programs are not joined, although 581 nodes match events by chance."""
    with pair(
        tmp_path / "job", PARAM / "resnet_kineto.json.gz", PARAM / "resnet_et.json.gz"
    ) as store:
        assert store.sql(OUTCOMES).rows() == [
            ("ids of another numbering", 14_389),
            ("process or thread", 3),
        ]


def test_a_file_is_read_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read correctly if its blocks end inside nodes, numbers or UTF-8 characters."""
    value = nodes()
    value["nodes"][4]["name"] = "ä" * 40
    value["nodes"].insert(3, 123456789)
    path = tmp_path / "et.json"
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    for size in (7, 64, 1 << 20):
        monkeypatch.setattr(execution_trace, "BLOCK_BYTES", size)
        found: list[Any] = []
        assert read_execution_trace(str(path), found.append) is None
        assert found == [node for node in value["nodes"] if isinstance(node, dict)]


def test_a_node_without_an_end_is_no_reason_to_read_all_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unterminated string does not cause the rest of the file to be read into memory."""
    monkeypatch.setattr(execution_trace, "BLOCK_BYTES", 64)
    monkeypatch.setattr(execution_trace, "MAX_NODE_CHARACTERS", 1000)
    path = tmp_path / "et.json"
    path.write_text(
        '{"schema": "1", "nodes": [{"id": 1}, {"name": "' + "x" * 9000, encoding="utf-8"
    )
    found: list[Any] = []
    problem = read_execution_trace(str(path), found.append)
    assert found == [{"id": 1}]
    assert problem is not None
    assert problem.startswith("it is truncated or damaged after 1 node")


def iterations(shift: int, other: str = "aten::relu") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a trace with three identical iterations and an execution trace of the second one.

    The ids in the execution trace do not match the ids in the trace.
    """
    calls = ("aten::linear", "aten::t", "aten::addmm", other)
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 10 * number, "dur": 5}
        | {"args": {"External id": 1000 + number, "Sequence number": number // 4 * 2 + place // 2}}
        for number, (place, name) in enumerate([*enumerate(calls)] * 3)
    ]
    listed = [
        {"id": 10 + place, "name": name, "ctrl_deps": 1, "inputs": {}, "outputs": {}}
        | {"attrs": [{"name": key, "value": value} for key, value in values.items()]}
        for place, name in enumerate((*calls[:3], "aten::relu"))
        for values in [{"rf_id": 5 + place, "tid": 3, "seq_id": shift + 2 + place // 2}]
    ]
    return {"traceEvents": events}, {"schema": "1.1.1-chakra.0.0.4", "nodes": listed}


@pytest.mark.parametrize(
    ("shift", "other", "expected"),
    [
        (0, "aten::relu", [("joined", 4, "order")]),
        (40, "aten::relu", [("no event with its id", 4, None)]),
        (
            0,
            "aten::gelu",
            [("event at its position has another name", 1, None), ("joined", 3, "order")],
        ),
    ],
)
def test_sequence_numbers_place_nodes_whose_ids_number_other_calls(
    shift: int, other: str, expected: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """If ids do not match, nodes are joined by sequence numbers of a matching iteration."""
    trace, observed = tmp_path / "trace.json", tmp_path / "et.json"
    for path, value in zip((trace, observed), iterations(shift, other), strict=True):
        path.write_text(json.dumps(value), encoding="utf-8")
    query = "SELECT outcome, node_count, match_method FROM execution_trace_joins() ORDER BY ALL"
    with pair(tmp_path / "job", trace, observed) as store:
        assert store.sql(query).rows() == expected
        if shift == 0:
            first = "SELECT min(event_id) FROM lib.execution_trace_events(NULL, NULL)"
            assert store.sql(first).rows() == [(4,)]
