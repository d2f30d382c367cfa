"""``export --redact`` writes numbers and public names, but none of the user's names."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hta_sql
from hta_sql.cli import main
from hta_sql.exports.redaction.exporting import export_redacted
from hta_sql.exports.redaction.names import Redactor
from hta_sql.exports.redaction.stores import redact_store
from hta_sql.exports.redaction.traces import redacted_event
from hta_sql.store.disk.folder import store_folder
from hta_sql.traces.events import Event
from tests.examples import examples
from tests.properties.traces import random_job, write_job
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

PLANTED = "Zqacme"

KEPT = {
    "operator": (
        *("aten::add_.Tensor", "autograd::engine::evaluate_function: AddmmBackward0"),
        *(
            "flash_attn_3::fwd",
            "triton_poi_fused_add_relu_0",
            "record_param_comms",
            "CompiledFunctionBackward",
        ),
    ),
    "kernel": (
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)",
        *("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",),
        *("ampere_sgemm_128x64_tn", "Memcpy HtoD (Pageable -> Device)", "Stream Wait Event"),
    ),
    "annotation": (
        *("ProfilerStep#3", "Optimizer.step#AdamW.step", "## backward ##", "nccl:all_reduce"),
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    ),
    # Programs with per-thread default streams call functions whose names end in _ptsz.
    "runtime": ("cudaGraphLaunch_ptsz_v10000", "cuGraphLaunch_ptsz", "hipGraphLaunch"),
    "frame": (
        *("torch/nn/modules/linear.py(125): forward", "nn.Module: Linear_3"),
        "<built-in method add of Tensor object at 0x7f00>",
    ),
    "group": ("mesh_dp_shard", "TENSOR_MODEL_PARALLEL_GROUP"),
    "device": ("NVIDIA H100 80GB HBM3", "AMD Instinct MI300X"),
}

CHANGED = {
    ("operator", f"{PLANTED}::attention"): "operator_*",
    ("operator", f"{PLANTED}FnBackward"): "class_*Backward",
    (
        "kernel",
        f"void at::native::foo<{PLANTED}::Op>(int)",
    ): "void at::native::foo<kernel_*::Op>(int)",
    ("kernel", f"{PLANTED}_gemm_kernel"): "kernel_*_gemm_",
    ("annotation", f"Optimizer.step#{PLANTED}.step"): "Optimizer.step#class_*.step",
    ("annotation", f"## {PLANTED} dataloader ##"): "annotation_*_dataload",
    ("annotation", f"ProfilerStep#3 {PLANTED}"): "ProfilerStep#3annotation_*",
    ("runtime", f"cuda{PLANTED}GraphLaunch"): "cudaname_*_GraphLaunch_",
    ("runtime", f"{PLANTED} cudaStreamBeginCapture"): "runtime_*_BeginCapture",
    ("frame", f"/home/{PLANTED}/train.py(3): forward"): "frame_*.py(3): forward",
    ("frame", f"/home/{PLANTED}/site-packages/torch/a.py(3): f"): "site-packages/torch/a.py(3): f",
    ("frame", f"nn.Module: {PLANTED}_0"): "nn.Module: class_*_0",
    ("group", f"mesh_{PLANTED}_tp"): "mesh_x_*_tp",
    ("run", f"{PLANTED}-capture2"): "run_*-capture2",
}

SAME = (
    *("kpis", "step_accounting", "temporal_breakdown", "operator_table", "operator_categories"),
    *("kernel_table", "gpu_kernel_types", "advice", "stragglers", "idle_causes"),
)
"""Analyses whose figures must not change when names are redacted."""


@pytest.mark.parametrize(("kind", "name"), [(k, name) for k in KEPT for name in KEPT[k]])
def test_names_of_libraries_stay(kind: str, name: str) -> None:
    """Names of PyTorch, CUDA and NCCL are kept, because they reveal nothing about the user."""
    assert Redactor("key")(kind, name) == name


@pytest.mark.parametrize(("kind", "name"), CHANGED)
def test_names_of_the_user_go(kind: str, name: str) -> None:
    """A user's name is replaced, but the public text before and after it is kept."""
    new = Redactor("key")(kind, name)
    head, _, tail = CHANGED[kind, name].partition("*")
    assert new.startswith(head)
    assert new.endswith(tail)
    assert PLANTED not in new


def test_a_key_makes_names_comparable() -> None:
    """Two exports with the same key replace a name equally; without a key, they do not."""
    names = [Redactor(key)("host", PLANTED) for key in ("a", "a", "b", None, None)]
    assert names[0] == names[1]
    assert len(set(names)) == 4


def test_a_public_word_does_not_open_a_namespace() -> None:
    """User names are redacted in namespaces such as ``model::`` and within library names."""
    new = Redactor("key")(
        "kernel", f"void model::{PLANTED}<cub::{PLANTED[:1]}, {PLANTED}>::{PLANTED}()"
    )
    assert PLANTED not in new
    assert PLANTED not in Redactor("key")("kernel", f"_ZN2at6native3fooIN{len(PLANTED)}{PLANTED}E")


_TEXTS = st.lists(
    st.sampled_from(
        (PLANTED, f"x{PLANTED}9", "::", "_", "<", ">", "(", ")", "1", " ", "/", ".py(3): ", "aten")
    )
    | st.sampled_from(
        ("Backward0", "nccl:", "gemm", "{", "}", "\u00e9", '"', "\\", "torch", "cuda")
    ),
    max_size=6,
).map("".join)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_KEYS = (
    st.sampled_from(("Input Dims", "dtype", "name", "Call stack", "Process Group Name")) | _TEXTS
)
_EVENTS = st.fixed_dictionaries(
    {"name": _TEXTS | _VALUES},
    optional={
        "cat": st.sampled_from(("cpu_op", "python_function", "user_annotation", "cuda_runtime"))
        | _VALUES,
        "args": st.dictionaries(_KEYS, _VALUES, max_size=4) | _VALUES,
        **dict.fromkeys(("ph", "pid", "tid", "ts", "dur", "id", "bp", "s", PLANTED), _VALUES),
    },
)


@given(fields=_EVENTS)
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_no_secret_of_an_event_is_written(fields: dict[str, Any]) -> None:
    """Secrets are removed from names, keys and values of any type."""
    text = json.dumps(fields).encode()
    new = redacted_event(Redactor("key"), Event(0, text, fields))
    assert PLANTED.encode() not in new
    json.loads(new)


def trace() -> dict[str, Any]:
    """Return the trace of a job with private text in every field."""

    def event(cat: str, name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
        place = {"pid": 0, "tid": 7} if cat in ("kernel", "gpu_memcpy") else {"pid": 1, "tid": 1}
        return {"ph": "X", "cat": cat, "name": name, **place, "ts": ts, "dur": dur, "args": args}

    def device(name: str, ts: float, number: int, cat: str = "kernel") -> dict[str, Any]:
        return event(cat, name, ts, 100.5, device=0, stream=7, correlation=number)

    def call(ts: float, number: int) -> dict[str, Any]:
        return event("cuda_runtime", "cudaLaunchKernel", ts, 2, correlation=number)

    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    types = {"Input type": ["float", PLANTED], "Input Dims": [[2, 2], [2, 2]]}
    collective = {"Collective name": "allreduce", "Process Group Name": PLANTED, "Group size": 2}
    events = [
        *(event("user_annotation", f"ProfilerStep#{n}", 1000.0 * n, 1000) for n in (1, 2, 3)),
        event("user_annotation", loader, 1000, 300),
        event("user_annotation", f"{PLANTED} phase", 1300, 400),
        event("python_function", f"/home/{PLANTED}/train.py(3): {PLANTED}", 1000, 900),
        event("python_function", f"nn.Module: {PLANTED}Net_0", 1300, 390),
        event("cpu_op", "aten::mm", 1310, 20, **types, **{"Call stack": f"{PLANTED}.py(1): f"}),
        call(1312, 1),
        device(f"void {PLANTED}::gemm<float>(float*)", 1320, 1),
        event("cpu_op", f"{PLANTED}::op", 1340, 20, **{PLANTED: PLANTED, f"{PLANTED} count": 3}),
        call(1342, 2),
        device("void at::native::vectorized_elementwise_kernel<4>(int)", 1450, 2),
        call(1350, 3),
        {**device("ncclDevKernel_AllReduce", 1600, 3), "args": {"correlation": 3, **collective}},
        {
            "ph": "M",
            "name": "process_name",
            "pid": 1,
            "args": {"name": f"{PLANTED} --key {PLANTED}"},
        },
        {"ph": "C", "name": f"{PLANTED} counter", "pid": 1, "ts": 1001, "args": {PLANTED: 5}},
        {
            "ph": "i",
            "cat": PLANTED,
            "name": PLANTED,
            "pid": PLANTED,
            "tid": PLANTED,
            "ts": 1002,
            "s": "t",
        },
        {"ph": "X", "cat": "cpu_op", "name": 'broken "' + PLANTED, "ts": "soon", "dur": PLANTED},
        PLANTED,
    ]
    group = {"pg_name": PLANTED, "pg_desc": f"{PLANTED}_dp", "pg_size": 2, "ranks": [0, 1]}
    return {
        "schemaVersion": 1,
        "host_name": f"{PLANTED}.example.com",
        "username": PLANTED,
        "traceName": f"/home/{PLANTED}/trace.json",
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9}],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2, "pg_config": [group]},
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "traceEvents": events,
        f"{PLANTED} key": {PLANTED: [PLANTED]},
    }


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest the trace; its folder, file and run have private names, too."""
    folder = tmp_path_factory.mktemp("job") / PLANTED
    folder.mkdir()
    (folder / f"{PLANTED}.json").write_text(json.dumps(trace()), encoding="utf-8")
    ingest_only(folder, folder / "job.store", run=f"{PLANTED}-run")
    return folder


def figures(store: TraceStore, name: str) -> list[str]:
    """Return the numbers in each row of an answer, sorted and without names."""
    rows = store.run(name).rows()
    return sorted(repr([v for v in row if isinstance(v, (int, float))]) for row in rows)


def test_a_store_is_given_away(planted: Path, tmp_path: Path) -> None:
    """No byte of a redacted store and no string in its tables contains a secret."""
    target = tmp_path / "shared.duckdb"
    redact = Redactor("key")
    export_redacted(planted / "job.store", target, "duckdb", redact)
    assert redact.strangers == 0
    assert PLANTED.encode() not in target.read_bytes()
    with duckdb.connect(str(target), read_only=True) as con:
        tables = con.sql("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
        assert len(tables) > 15
        for schema, table in tables:
            rows = con.sql(f'FROM "{schema}"."{table}"').fetchall()
            assert PLANTED.lower() not in repr(rows).lower(), table


def test_a_trace_is_given_away(planted: Path, tmp_path: Path) -> None:
    """A redacted trace contains no secret and is a valid trace."""
    target = tmp_path / "shared.json.gz"
    assert main(["export", str(planted), "-o", str(target), "--redact"]) == 0
    text = gzip.decompress(target.read_bytes())
    assert PLANTED.lower() not in text.decode().lower()
    json.loads(text)


def test_figures_are_the_same(planted: Path, tmp_path: Path) -> None:
    """Redacting a store, or the trace before its ingest, does not change the figures."""
    redact_store(store_folder(planted / "job.store"), tmp_path / "a.store", Redactor("key"))
    export_redacted(planted, tmp_path / "b.json", "trace", Redactor("key"))
    ingest_only(tmp_path / "b.json", tmp_path / "b.store")
    with (
        hta_sql.open(planted / "job.store") as store,
        hta_sql.open(tmp_path / "a.store") as of_tables,
        hta_sql.open(tmp_path / "b.store") as of_trace,
    ):
        for name in SAME:
            expected = figures(store, name)
            assert expected, name
            assert figures(of_tables, name) == expected, name
            assert figures(of_trace, name) == expected, name


def test_tables_are_given_away(planted: Path, tmp_path: Path) -> None:
    """CSV files that are exported with ``--redact`` contain no secret."""
    tables = ("cpu_ops", "annotations", "python_calls", "counters", "ranks", "stacks", "steps")
    more = ("event_args", "other_events", "process_groups", "quarantine", "devices", "gpu_ops")
    options = ("--format", "csv", "--redact", "--redact-key", "k", "-o", str(tmp_path / "out"))
    assert main(["export", str(planted / "job.store"), *tables, *more, *options]) == 0
    for path in (tmp_path / "out").iterdir():
        assert PLANTED not in path.read_text(encoding="utf-8")
    text = (tmp_path / "out" / "gpu_ops.csv").read_text(encoding="utf-8")
    assert "ncclDevKernel_AllReduce" in text


def test_a_dry_run_lists_what_goes(
    planted: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A dry run lists the names of each kind with examples, and writes nothing."""
    assert main(["export", str(planted / "job.store"), "--redact", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "host: 0 kept, 1 replaced" in lines
    assert any(f"replaced  {PLANTED}::op ─▶ operator_" in line for line in lines)
    assert any("kept      aten::mm" in line for line in lines)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [["--dry-run"], ["--redact-key", "k"], ["--format", "trace"]])
def test_options_of_redaction_need_it(option: list[str], planted: Path) -> None:
    """Redaction options without ``--redact`` are an error, as the export would not be redacted."""
    assert main(["export", str(planted), "-o", "out", *option]) == 2


def with_secrets(rng: Random, event: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of an event with private text in its name or its arguments."""
    args = {
        **event["args"],
        rng.choice((PLANTED, "dtype", "Call stack")): PLANTED * rng.randrange(2),
    }
    name = rng.choice((event["name"], event["name"] + PLANTED, f"{PLANTED} {event['name']}"))
    return {**event, "name": name, "args": args if rng.random() < 0.5 else event["args"]}


def secret_job(seed: int, folder: Path) -> dict[str, dict[int, str]]:
    """Write a random edge-case job with secrets mixed in."""
    rng = Random(seed)
    runs = random_job(seed).items()
    return write_job(
        {
            run: {rank: [with_secrets(rng, e) for e in events] for rank, events in ranks.items()}
            for run, ranks in runs
        },
        folder,
    )


@pytest.mark.parametrize("seed", range(examples(5)))
def test_random_traces_are_given_away(seed: int, tmp_path: Path) -> None:
    """A redacted random trace has the times of all events and no secret."""
    for ranks in secret_job(seed, tmp_path).values():
        for path in ranks.values():
            export_redacted(path, tmp_path / "out.json", "trace", Redactor("key"))
            text = (tmp_path / "out.json").read_text(encoding="utf-8")
            assert PLANTED not in text
            given = json.loads(Path(path).read_text(encoding="utf-8"))["traceEvents"]
            written = json.loads(text)["traceEvents"]
            assert [(e["ts"], e.get("dur")) for e in written] == [
                (e["ts"], e.get("dur")) for e in given
            ]


@pytest.mark.parametrize("seed", range(2))
def test_random_figures_are_the_same(seed: int, tmp_path: Path) -> None:
    """A store of random traces and its redacted copy have the same figures."""
    for run, ranks in secret_job(seed, tmp_path).items():
        ingest_only(ranks, tmp_path / "job.store", run=run)
    redact_store(store_folder(tmp_path / "job.store"), tmp_path / "a.store", Redactor("key"))
    with (
        hta_sql.open(tmp_path / "job.store") as store,
        hta_sql.open(tmp_path / "a.store") as copy,
    ):
        # Of equally long idle gaps, idle_causes shows the one whose cause has the first name.
        for name in (name for name in SAME if name != "idle_causes"):
            assert figures(copy, name) == figures(store, name), name


def test_what_was_lost_is_not_quoted(tmp_path: Path) -> None:
    """A malformed event is omitted from a redacted trace and counted as lost."""
    source, target = tmp_path / "a.json", tmp_path / "b.json"
    good = '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}'
    source.write_text(f'{{"traceEvents": [{good}, {{"ph": "X", {PLANTED}: 3 4}}, {good}]}}')
    export_redacted(source, target, "trace", Redactor("key"))
    text = target.read_text(encoding="utf-8")
    assert PLANTED not in text
    assert len(json.loads(text)["traceEvents"]) == 2
    assert json.loads(text)["hta_sql"]["lost_count"] == 1


def test_dumps_next_to_traces_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Only traces can be written as redacted traces; the warning names the other files."""
    recorded = Path(__file__).parents[1] / "traces" / "recorded"
    (tmp_path / "job").mkdir()
    for path in (
        recorded / "gloo" / "rank0.json.gz",
        recorded / "hangs/subgroup_behind/nccl_trace_rank_0",
    ):
        (tmp_path / "job" / path.name).write_bytes(path.read_bytes())
    done = export_redacted(tmp_path / "job", tmp_path / "out", "trace", Redactor())
    assert [one.name for one in done] == ["rank0.json.gz"]
    assert "nccl_trace_rank_0" in caplog.text
