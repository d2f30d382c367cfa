"""Tests of HTA's helper modules: flat columns, symbol tables and argument columns."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from hta_sql.hta.common.trace import Trace
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable
from hta_sql.hta.configs.default_values import AttributeSpec, ValueType
from hta_sql.hta.configs.parser_config import AVAILABLE_ARGS, ParserConfig
from hta_sql.hta.utils.utils import flatten_column_names
from hta_sql.library.arguments import known_arguments

ROOT = Path(__file__).parents[1]


def test_flat_columns() -> None:
    """Multi-level column names become flat, and flat column names are unchanged."""
    wide = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "sum"), ("b", "")]))
    for _ in range(2):
        flatten_column_names(wide)
        assert list(wide.columns) == ["a_sum", "b"]


def test_symbol_tables() -> None:
    """Symbol tables map distinct symbols to ids and back, and match by the start of a symbol."""
    table = TraceSymbolTable(["b", "a.c", "b", "abc"])
    assert table.get_sym_id_map() == {"b": 0, "a.c": 1, "abc": 2}
    assert table.get_sym_table() == ["b", "a.c", "abc"]
    assert table.matching("a.c") == {1, 2}
    frame = pd.DataFrame({"name": [1, 2, -1]})
    table.add_symbols_to_trace_df(frame, "name")
    assert frame["name"].tolist() == ["a.c", "abc", ""]


def test_parser_config() -> None:
    """Arguments can be added once, and the default can be changed and restored."""
    config = ParserConfig.get_default_cfg()
    assert len(config.args) == 20
    config.add_args([*ParserConfig.ARGS_INPUT_SHAPE, AVAILABLE_ARGS["sm::occupancy"]])
    assert len(config.args) == 21
    try:
        ParserConfig.set_default_cfg(config)
        config.add_args([AVAILABLE_ARGS["cpu_op::kernel_hash"]])
        assert len(ParserConfig.get_default_cfg().args) == 21
    finally:
        ParserConfig.set_default_cfg(ParserConfig())
    assert len(ParserConfig.get_default_cfg().args) == 20


def test_types_of_arguments_agree() -> None:
    """Each data frame column has the type that the argument type check expects, or is an object."""
    types_of = {"integer": ValueType.Int, "number": ValueType.Float, "text": ValueType.String}
    checked = {a.name: types_of.get(a.checked_type) for a in known_arguments() if a.checked_type}
    for spec in AVAILABLE_ARGS.values():
        if checked.get(spec.raw_name) and spec.raw_name != "est. achieved occupancy %":
            assert spec.value_type in {checked[spec.raw_name], ValueType.Object}, spec


def test_arguments_become_columns(tmp_path: Path) -> None:
    """The configuration selects typed columns with defaults."""
    path = tmp_path / "rank0.json"
    path.write_bytes((ROOT / "tests" / "traces" / "arguments.json").read_bytes())
    mine = AttributeSpec("mine", "my/key~", ValueType.Object, "-")
    config = ParserConfig([*AVAILABLE_ARGS.values(), mine])
    with Trace([str(path)], parser_config=config) as trace:
        frame = trace.get_trace(0)
    assert frame["mine"].tolist() == [{"a": 1}, "-", "-", "-"]
    assert frame["grid"].tolist() == ["[]", "[]", [8, 1, 1], "[]"]
    assert frame["cbid"].tolist() == [-1, 211, -1, -1]
    assert frame["est_occupancy"].tolist() == [-1, -1, -1, 31]
    assert str(frame["est_occupancy"].dtype) == "int64"
    assert frame["warps_per_sm"].tolist() == [0.0] * 4
