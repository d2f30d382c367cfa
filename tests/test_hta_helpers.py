"""HTA's helpers under HTA's paths: kinds of kernels, patterns, symbol tables, settings."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

from hta_sql.errors import ParameterError, TraceFormatError
from hta_sql.hta.common import types
from hta_sql.hta.common.constants import CUDA_MAX_LAUNCH_QUEUE_PER_STREAM
from hta_sql.hta.common.trace import Trace, trace_event_timestamp_to_unixtime_ns
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable
from hta_sql.hta.common.types import DeviceType, infer_device_type, to_grouping_pattern
from hta_sql.hta.configs import env_options
from hta_sql.hta.configs.config import HtaConfig, setup_logger
from hta_sql.hta.configs.default_values import AttributeSpec, ValueType, YamlVersion
from hta_sql.hta.configs.parser_config import ParserBackend, ParserConfig
from hta_sql.hta.utils import utils
from hta_sql.hta.utils.checker import is_valid_directory
from hta_sql.hta.utils.validate_trace import get_argument_spec, get_expected_arguments
from hta_sql.hta.version import __version_tuple__

ROOT = Path(__file__).parents[1]
SYMBOLS = [
    *("cpu_op", "user_annotation", "cuda_runtime", "hip_driver", "kernel", "gpu_memcpy"),
    *("cuda_sync", "python_function", "gpu_user_annotation", "ProfilerStep#3", "kernel_x"),
    *("Memcpy HtoD (Pinned -> Device)", "hipMemset", "cuLaunchKernelEx", "hipExtLaunchKernel"),
    *("cudaStreamSynchronize", "cudaGraphLaunch", "aten::mm"),
]


def test_what_a_kernel_is() -> None:
    """By the rules that the tables are made with; a wait is nothing of the three."""
    kinds = {
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL": "COMMUNICATION",
        "void deep_ep::internode::dispatch": "COMMUNICATION",
        "triton_poi_fused_all_reduce_like": "COMPUTATION",
        "Memcpy DtoH (Device -> Pageable)": "MEMORY",
        "hipMemsetAsync": "MEMORY",
        "hip_gemm": "COMPUTATION",
        "Context Sync": "OTHER",
        "Stream Wait Event": "OTHER",
        "event_wait": "OTHER",
        "ampere_sgemm": "COMPUTATION",
    }
    assert {name: utils.get_kernel_type(name) for name in kinds} == kinds
    assert utils.is_comm_kernel("rccl_x")
    assert utils.is_memory_kernel("Memset (Device)")
    assert not utils.is_compute_kernel("Memset (Device)")
    assert utils.is_computer_kernel("gemm")
    names = (
        "Memset (Device)",
        "Memcpy HtoD (Pinned -> Device)",
        "hipMemcpy DtoD",
        "Memcpy",
        "gemm",
    )
    assert [utils.get_memory_kernel_type(name) for name in names] == [
        *("Memset", "Memcpy HtoD", "Memcpy DtoD", "Memcpy Unknown", "Memcpy Unknown")
    ]


def test_frames() -> None:
    """Intervals that touch are one; an interval inside an earlier one does not end it."""
    frame = pd.DataFrame({"ts": [50, 0, 2, 10, 30], "dur": [1, 10, 1, 5, 5]})
    assert utils.merge_kernel_intervals(frame).to_dict("list") == {
        "ts": [0, 30, 50],
        "end": [15, 35, 51],
    }
    assert list(frame.columns) == ["ts", "dur"]
    assert utils.merge_kernel_intervals(frame.iloc[:0]).empty
    wide = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "sum"), ("b", "")]))
    utils.flatten_column_names(wide)
    assert list(wide.columns) == ["a_sum", "b"]
    streams = pd.DataFrame({"stream": ["7", "default", 20.0, None]})
    utils.normalize_gpu_stream_numbers(streams)
    assert streams["stream"].tolist() == [7, -1, 20, -1]
    with pytest.raises(ParameterError, match="no column stream"):
        utils.normalize_gpu_stream_numbers(frame)
    texts = pd.DataFrame({"name": [1], "s_name": ["a"], "cat": ["b"]})
    assert utils.get_symbol_column_names(texts) == ("s_name", "cat")


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths from here and from home; folders that cannot be used, and why."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    assert utils.normalize_path("./a") == str(tmp_path / "a")
    assert utils.normalize_path("~/a/b") == "/home/someone/a/b"
    assert utils.normalize_path("a/b") == "a/b"
    assert utils.get_mp_pool_size(1, 1) == 1
    assert utils.get_mp_pool_size(1 << 60, 8) == 1
    assert is_valid_directory(str(tmp_path), must_be_writable=True).success
    (tmp_path / "file").touch()
    reasons = {"": "empty", "nowhere": "does not exist", "file": "not a folder"}
    for path, reason in reasons.items():
        outcome = is_valid_directory(path)
        assert not outcome.success
        assert reason in outcome.reason


def test_patterns() -> None:
    """Categories as they stand in frames; a name that begins like one is none."""
    table = TraceSymbolTable(SYMBOLS)

    def found(pattern: types.GroupingPattern) -> list[str]:
        return list(table.get_symbol_ids(pattern))

    assert found(types.KERNEL_CATEGORY_PATTERN) == ["kernel", "gpu_memcpy"]
    assert found(types.CPU_EVENTS_CATEGORY_PATTERN) == SYMBOLS[:4]
    assert found(types.GPU_EVENT_CATEGORY_PATTERN) == ["kernel", "gpu_memcpy", "cuda_sync"]
    assert found(types.DEVICE_RUNTIME_CATEGORY_PATTERN) == ["cuda_runtime", "hip_driver"]
    neither = to_grouping_pattern(["cpu", "gpu"], "neither", inverse_match=True)
    assert neither.match("kernel")
    assert not neither.match("gpu_memcpy")
    assert to_grouping_pattern(neither) is neither
    with pytest.raises(ParameterError, match="not 3"):
        to_grouping_pattern(3)  # type: ignore[arg-type]  # on purpose
    for streams, device in (
        ([7, 0], DeviceType.GPU),
        ([-1], DeviceType.CPU),
        ([-1, 7], DeviceType.UNKNOWN),
    ):
        assert infer_device_type(pd.DataFrame({"stream": streams})) is device
    assert infer_device_type(pd.DataFrame({"ts": [1]})) is DeviceType.UNKNOWN


def test_symbol_tables(tmp_path: Path) -> None:
    """Numbers of groups of symbols, tables from elsewhere, frames from one table to another."""
    table = TraceSymbolTable(SYMBOLS)
    ids = table.sym_index
    assert table.get_gpu_kernel_cat_ids() == [ids["kernel"], ids["gpu_memcpy"]]
    assert table.get_cpu_event_cat_ids() == [0, 1, 2, 3]
    assert table.get_profiler_step_ids() == [ids["ProfilerStep#3"]]
    assert table.get_memory_name_ids() == [ids[SYMBOLS[11]], ids["hipMemset"]]
    launches = ("cuLaunchKernelEx", "hipExtLaunchKernel", "cudaGraphLaunch")
    assert table.get_kernel_launch_ids() == [ids[name] for name in launches]
    assert table.get_symbol_names([0, 4, 99, -1]) == {0: "cpu_op", 4: "kernel"}
    assert table.get_sym_index_series()["kernel"] == ids["kernel"]
    assert table.get_sym_table_series()[4] == "kernel"
    sparse = TraceSymbolTable.create_from_symbol_id_map({"a": 2, "b": 0})
    assert sparse.sym_table == ["b", "Undefined-1", "a"]
    with pytest.raises(ParameterError, match="0 or more"):
        TraceSymbolTable.create_from_symbol_id_map({"a": 1, "b": 1})
    path = tmp_path / "symbols.csv"
    path.write_text("symbol\nnull\nb\n", encoding="utf-8")
    assert TraceSymbolTable.from_csv_file(path).sym_table == ["null", "b"]
    path.write_text("other\na\n", encoding="utf-8")
    with pytest.raises(ParameterError, match="no column symbol"):
        TraceSymbolTable.from_csv_file(path)
    with pytest.raises(ParameterError, match="cannot be read"):
        TraceSymbolTable.from_csv_file(tmp_path / "none.csv")
    sparse.add_symbols_mp([["b", "c"], ["d"]])
    assert sparse.sym_table[3:] == ["c", "d"]
    frame = pd.DataFrame({"name": [2, 0], "cat": [0, 0]})
    other = TraceSymbolTable(["x", "a", "b"])
    other.update_encoded_df(frame, sparse)
    assert frame.to_dict("list") == {"name": [1, 2], "cat": [2, 2]}
    with pytest.raises(ParameterError, match="'x' has no number"):
        sparse.update_encoded_df(frame.replace(1, 0), other)
    other.add_symbols_to_trace_df(frame, "name")
    assert frame["name"].tolist() == ["a", "b"]
    assert TraceSymbolTable.NULL < -1


def test_queries_of_symbol_tables() -> None:
    """Calls are found by what they launched, waits are none; as text for DataFrame.query."""
    table = TraceSymbolTable(SYMBOLS)
    ids = table.sym_index
    rows = [
        ("cuLaunchKernelEx", "cuda_runtime", -1, 3),
        ("cudaStreamSynchronize", "cuda_runtime", -1, 4),
        ("aten::mm", "cpu_op", -1, -1),
        ("kernel_x", "kernel", 7, 1),
    ]
    frame = pd.DataFrame(
        [(ids[name], ids[cat], stream, link) for name, cat, stream, link in rows],
        columns=["name", "cat", "stream", "index_correlation"],
    )
    assert list(frame.query(table.get_runtime_launch_events_query()).index) == [0]
    assert list(frame.query(table.get_operator_or_cuda_runtime_query()).index) == [0, 1, 2]


def test_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later file replaces keys; what is not there is the default; broken files say so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    own, given = tmp_path / "trace_analyzer.json", tmp_path / "mine.json"
    own.write_text('{"a": {"b": 1}, "c": 2}', encoding="utf-8")
    given.write_text('{"c": 3}', encoding="utf-8")
    config = HtaConfig(str(given))
    assert config.get_config() == {"a": {"b": 1}, "c": 3}
    assert config.get_config("a.b") == 1
    assert config.get_config("a.b.c", "none") == "none"
    assert config.get_config_file_paths() == [str(own), str(given)]
    assert HtaConfig(load_default_paths=False).get_config() == {}
    config.show()
    setup_logger()
    given.write_text("[]", encoding="utf-8")
    with pytest.raises(ParameterError, match="no JSON object"):
        HtaConfig(str(given))
    given.write_text("{", encoding="utf-8")
    with pytest.raises(ParameterError, match="cannot be read"):
        HtaConfig(str(given))
    monkeypatch.setenv(env_options.HTA_DISABLE_NS_ROUNDING_ENV, "1")
    assert env_options.disable_ns_rounding()
    assert not env_options.critical_path_add_zero_weight_launch_edges()
    assert "HTA_DISABLE_NS_ROUNDING=1" in env_options.get_options()
    assert CUDA_MAX_LAUNCH_QUEUE_PER_STREAM == 1024
    assert __version_tuple__ >= (0, 1)


def test_parser_config() -> None:
    """Arguments are added once, chosen, described; the default can be set and set back."""
    config = ParserConfig(ParserConfig.get_minimum_args())
    config.add_args([*ParserConfig.ARGS_COMMUNICATION, *ParserConfig.ARGS_MINIMUM])
    assert [spec.name for spec in config.get_args()][:3] == [
        *("stream", "correlation", "collective_name")
    ]
    assert len(config.args) == 2 + 8
    config.set_args_selector(["group_size"])
    assert [spec.raw_name for spec in config.get_args()] == ["Group size"]
    with pytest.raises(ParameterError, match="'x' is selected"):
        config.set_args_selector(["x"]).get_args()
    assert ParserConfig.transform_arg_name("est. achieved occupancy %") == "est_achieved_occupancy"
    assert ParserConfig.transform_arg_name("memory bandwidth (GB/s)") == "memory_bandwidth"
    assert ParserConfig.transform_arg_name("name") == "arg_name"
    known = ParserConfig.get_all_available_args()
    args = pd.Series([{"Group size": 8, "new": 1.5}, None, {"name": "x", "on": [1]}], dtype=object)
    specs = ParserConfig.infer_attribute_specs(args, known)
    assert specs["Group size"] is known["nccl::group_size"]
    assert [specs[name].value_type for name in ("new", "name", "on")] == [
        *(ValueType.Float, ValueType.String, ValueType.Object)
    ]
    try:
        ParserConfig.set_default_cfg(ParserConfig(ParserConfig.get_minimum_args()))
        assert len(ParserConfig.get_default_cfg().args) == 2
        assert len(ParserConfig.enable_communication_args().args) == 10
        assert len(ParserConfig.get_default_cfg().args) == 10
    finally:
        ParserConfig.set_global_parser_config_version(YamlVersion.from_string("1.0.0"))
    assert len(ParserConfig.get_default_cfg().args) == 10
    config.set_parser_backend(ParserBackend.IJSON)
    assert config.clone().parser_backend is ParserBackend.IJSON
    assert YamlVersion(1, 2, 3).get_version_str() == "1.2.3"
    with pytest.raises(ParameterError, match="three numbers"):
        YamlVersion.from_string("1.2")


def test_the_two_lists_of_arguments_agree() -> None:
    """What frames have columns for is known to validate_trace_format, with the same type."""
    types_of = {"integer": ValueType.Int, "number": ValueType.Float, "text": ValueType.String}
    readers = ROOT / "sql" / "readers"
    with (readers / "argument_types.csv").open(encoding="utf-8", newline="") as file:
        checked = {row["argument"]: types_of.get(row["type"]) for row in csv.DictReader(file)}
    for spec in get_argument_spec("complete"):
        if checked[spec.raw_name] and spec.raw_name != "est. achieved occupancy %":
            assert spec.value_type in {checked[spec.raw_name], ValueType.Object}, spec
    assert {spec.raw_name for spec in get_argument_spec("minimal")} == {"stream", "correlation"}
    frame = get_expected_arguments(get_argument_spec())
    assert frame["trace_df_column_name"].is_monotonic_increasing
    assert len(frame) == 10
    with pytest.raises(ParameterError, match="No level 'x'"):
        get_argument_spec("x")


def test_arguments_become_columns(tmp_path: Path) -> None:
    """As a configuration says: typed, with its defaults; or all that occur."""
    path = tmp_path / "rank0.json"
    path.write_bytes((ROOT / "tests" / "traces" / "arguments.json").read_bytes())
    mine = AttributeSpec("mine", "my/key~", ValueType.Object, "-", YamlVersion(1, 0, 0))
    config = ParserConfig([*ParserConfig.ARGS_COMPLETE, mine])
    with Trace([str(path)], parser_config=config) as trace:
        frame = trace.get_trace(0)
        assert frame["mine"].tolist() == [{"a": 1}, "-", "-", "-"]
        assert frame["grid"].tolist() == ["[]", "[]", [8, 1, 1], "[]"]
        assert frame["cbid"].tolist() == [-1, 211, -1, -1]
        assert frame["est_occupancy"].tolist() == [-1, -1, -1, 31]
        assert str(frame["est_occupancy"].dtype) == "int64"
        assert frame["warps_per_sm"].tolist() == [0.0] * 4
    with Trace([str(path)], parser_config=ParserConfig(parse_all_args=True)) as trace:
        everything = trace.get_trace(0)
    assert everything["my_key~"].tolist() == [{"a": 1}, None, None, None]
    assert everything["blocks_per_sm"].tolist() == ["[]", "[]", 0.5, "[]"]
    assert "mine" not in everything


def test_arguments_of_one_column_name_have_a_column_each(tmp_path: Path) -> None:
    """Neither is dropped: the second has a 2 behind its name."""
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 1}
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": [{**event, "args": {"x y": 1, "x_y": 2}}]}))
    with Trace([str(path)], parser_config=ParserConfig(parse_all_args=True)) as trace:
        frame = trace.get_trace(0)
    assert frame["x_y"].tolist() == [1]
    assert frame["x_y_2"].tolist() == [2]


def test_times_on_the_clock() -> None:
    """All digits of a Decimal count; a float has what it has."""
    about = {"baseTimeNanoseconds": 1_700_000_000_000_000_000}
    assert trace_event_timestamp_to_unixtime_ns(1.5, about) == 1_700_000_000_000_001_500
    exact = Decimal("1712163098123456.789")
    assert trace_event_timestamp_to_unixtime_ns(exact, {"baseTimeNanoseconds": 0}) == (  # type: ignore[arg-type]  # finer than a float
        1712163098123456789
    )
    with pytest.raises(TraceFormatError, match="baseTimeNanoseconds"):
        trace_event_timestamp_to_unixtime_ns(1.5, json.loads("{}"))
