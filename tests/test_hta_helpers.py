"""Tests of HTA's helper modules: flat columns, symbol tables, settings and argument columns."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

import hta_sql.hta
from hta_sql.errors import ParameterError
from hta_sql.hta.common import types
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable
from hta_sql.hta.configs.config import HtaConfig, setup_logger
from hta_sql.hta.configs.default_values import (
    DEFAULT_CONFIG_FILENAME,
    AttributeSpec,
    ValueType,
    YamlVersion,
)
from hta_sql.hta.configs.parser_config import ParserConfig
from hta_sql.hta.utils.utils import flatten_column_names
from hta_sql.library.arguments import known_arguments

ROOT = Path(__file__).parents[1]
SYMBOLS = [
    *("cpu_op", "user_annotation", "cuda_runtime", "hip_driver", "kernel", "gpu_memcpy"),
    *("cuda_sync", "python_function", "gpu_user_annotation", "ProfilerStep#3", "kernel_x"),
    *("Memcpy HtoD (Pinned -> Device)", "hipMemset", "cuLaunchKernelEx", "hipExtLaunchKernel"),
    *("cudaStreamSynchronize", "cudaGraphLaunch", "aten::mm"),
]


def test_flat_columns() -> None:
    """Multi-level column names become flat, and flat column names are unchanged."""
    wide = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "sum"), ("b", "")]))
    for _ in range(2):
        flatten_column_names(wide)
        assert list(wide.columns) == ["a_sum", "b"]


def test_patterns() -> None:
    """A category pattern must match the whole category."""
    table = TraceSymbolTable(SYMBOLS)
    assert list(table.get_symbol_ids(types.KERNEL_CATEGORY_PATTERN)) == ["kernel", "gpu_memcpy"]
    assert list(table.get_symbol_ids(types.CPU_EVENTS_CATEGORY_PATTERN)) == SYMBOLS[:4]
    neither = types.GroupingPattern(re.compile("cpu|gpu"), inverse_match=True)
    assert list(table.get_symbol_ids(neither))[:2] == ["user_annotation", "cuda_runtime"]


def test_symbol_tables() -> None:
    """Symbol tables return the ids of symbol groups, and map symbols to ids and back."""
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
    frame = pd.DataFrame({"name": [1, 2]})
    TraceSymbolTable(["x", "a", "b"]).add_symbols_to_trace_df(frame, "name")
    assert frame["name"].tolist() == ["a", "b"]
    assert TraceSymbolTable.NULL < -1


def test_masks_of_symbol_tables() -> None:
    """Masks identify launches by their correlation, and exclude calls that wait."""
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

    def rows_of(mask: pd.Series) -> list[int]:
        return list(frame.index[mask])

    assert rows_of(table.get_runtime_launch_events_mask(frame)) == [0]
    assert rows_of(table.get_operator_or_cuda_runtime_mask(frame)) == [0, 1, 2]
    assert rows_of(table.get_events_mask(frame, ["mm", "kernel_"])) == [2, 3]
    assert rows_of(table.get_events_mask(frame, None)) == []


def test_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later file overrides keys, missing keys have a default, and broken files are errors."""
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
    with pytest.raises(ParameterError, match="not a JSON object"):
        HtaConfig(str(given))
    given.write_text("{", encoding="utf-8")
    with pytest.raises(ParameterError, match="cannot be read"):
        HtaConfig(str(given))


def test_default_files_of_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default settings files are HTA's three files, in HTA's order."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folders = (Path(hta_sql.hta.__file__).parent, tmp_path / "home" / ".hta", tmp_path)
    expected = [str(folder / DEFAULT_CONFIG_FILENAME) for folder in folders]
    assert HtaConfig.get_default_paths() == expected


def test_parser_config() -> None:
    """Arguments can be added once, selected and described, and the default changed and restored."""
    config = ParserConfig(ParserConfig.ARGS_MINIMUM)
    config.add_args([*ParserConfig.ARGS_COMMUNICATION, *ParserConfig.ARGS_MINIMUM])
    assert [spec.name for spec in config.get_args()][:3] == [
        *("stream", "correlation", "collective_name")
    ]
    assert len(config.args) == 2 + 8
    config.set_args_selector(["group_size"])
    assert repr(config).startswith(
        "ParserConfig(args=['stream', 'correlation', 'collective_name', "
    )
    assert repr(config).endswith("parse_all_args=False, selected_arg_keys=['group_size'])")
    assert [spec.raw_name for spec in config.get_args()] == ["Group size"]
    with pytest.raises(ParameterError, match="'x' is unknown"):
        config.set_args_selector(["x"]).get_args()
    assert ParserConfig.transform_arg_name("est. achieved occupancy %") == "est_achieved_occupancy"
    assert ParserConfig.transform_arg_name("memory bandwidth (GB/s)") == "memory_bandwidth"
    assert ParserConfig.transform_arg_name("name") == "arg_name"
    kinds = {1.5: ValueType.Float, "x": ValueType.String, (1,): ValueType.Object}
    for value, kind in kinds.items():
        assert ParserConfig.make_attribute_spec("new", value).value_type is kind
    try:
        ParserConfig.set_default_cfg(ParserConfig(ParserConfig.ARGS_MINIMUM))
        assert len(ParserConfig.get_default_cfg().args) == 2
        assert len(ParserConfig.enable_communication_args().args) == 10
        assert len(ParserConfig.get_default_cfg().args) == 10
    finally:
        ParserConfig.set_default_cfg(ParserConfig())
    assert len(ParserConfig.get_default_cfg().args) == 20
    assert config.clone().args == config.args


def test_types_of_arguments_agree() -> None:
    """Each data frame column has the type that the argument type check expects, or is an object."""
    types_of = {"integer": ValueType.Int, "number": ValueType.Float, "text": ValueType.String}
    checked = {a.name: types_of.get(a.checked_type) for a in known_arguments() if a.checked_type}
    for spec in ParserConfig.ARGS_COMPLETE:
        if checked[spec.raw_name] and spec.raw_name != "est. achieved occupancy %":
            assert spec.value_type in {checked[spec.raw_name], ValueType.Object}, spec


def test_arguments_become_columns(tmp_path: Path) -> None:
    """The configuration selects typed columns with defaults, or all arguments that occur."""
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
    """If two arguments map to the same column name, the second column's name ends in ``_2``."""
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 1}
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": [{**event, "args": {"x y": 1, "x_y": 2}}]}))
    with Trace([str(path)], parser_config=ParserConfig(parse_all_args=True)) as trace:
        frame = trace.get_trace(0)
    assert frame["x_y"].tolist() == [1]
    assert frame["x_y_2"].tolist() == [2]
