"""Tests of every DuckDB type with its extreme values, in every result form and output format."""

from __future__ import annotations

import io
import json

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hta_sql.exports.exports import write_sheets
from hta_sql.results.display import print_table
from hta_sql.results.notebook import result_markup
from hta_sql.results.result import Result
from hta_sql.results.writers import WRITERS
from hta_sql.store.query.execution import result_of

FAR = ("290000-01-01", "5000-01-01 (BC)", "infinity", "-infinity", "0001-01-01", "9999-12-31")

VALUES = {
    "BOOLEAN": ("true",),
    **{
        kind: (f"'{low}'::{kind}", f"'{high}'::{kind}")
        for kind, low, high in (
            ("TINYINT", -(2**7), 2**7 - 1),
            ("SMALLINT", -(2**15), 2**15 - 1),
            ("INTEGER", -(2**31), 2**31 - 1),
            ("BIGINT", -(2**63), 2**63 - 1),
            ("HUGEINT", -(2**127) + 1, 2**127 - 1),
            ("UTINYINT", 0, 2**8 - 1),
            ("USMALLINT", 0, 2**16 - 1),
            ("UINTEGER", 0, 2**32 - 1),
            ("UBIGINT", 0, 2**64 - 1),
            ("UHUGEINT", 0, 2**128 - 1),
        )
    },
    "BIGNUM": (f"'{-(10**60)}'::BIGNUM", "'0'::BIGNUM"),
    "FLOAT": ("'nan'::FLOAT", "'-inf'::FLOAT", "3.4e38::FLOAT"),
    "DOUBLE": ("'nan'::DOUBLE", "'inf'::DOUBLE", "-0.0::DOUBLE", "1e-320::DOUBLE"),
    "DECIMAL": (f"'{'9' * 38}'::DECIMAL(38, 0)", f"'0.{'9' * 38}'::DECIMAL(38, 38)"),
    "VARCHAR": ("''", "chr(0)", "'=1+1'", "repeat('x', 40000)", "chr(27) || chr(8238)"),
    "BLOB": (r"'\x00\xFF'::BLOB", "''::BLOB"),
    "BIT": ("'1010'::BIT",),
    "UUID": ("'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID",),
    "DATE": tuple(f"DATE '{day}'" for day in FAR),
    "TIMESTAMP": tuple(f"TIMESTAMP '{day}'" for day in FAR),
    "TIMESTAMP_S": tuple(f"TIMESTAMP_S '{day}'" for day in FAR),
    "TIMESTAMP_MS": tuple(f"TIMESTAMP_MS '{day}'" for day in FAR),
    "TIMESTAMP_NS": ("TIMESTAMP_NS '2020-01-01 00:00:00.123456789'", "TIMESTAMP_NS 'infinity'"),
    "TIMESTAMP WITH TIME ZONE": (
        *(f"TIMESTAMPTZ '{day}'" for day in FAR),
        "TIMESTAMPTZ '2020-01-01 00:00:00+02'",
    ),
    "TIMESTAMPTZ_NS": ("TIMESTAMPTZ_NS '2020-01-01 00:00:00.123456789+02'",),
    "TIME": ("TIME '24:00:00'", "TIME '23:59:59.999999'"),
    "TIME_NS": ("TIME_NS '12:00:00.123456789'",),
    "TIME WITH TIME ZONE": ("TIMETZ '12:00:00+15:59:59'", "TIMETZ '24:00:00-15:59:59'"),
    "INTERVAL": (
        "INTERVAL '1000000 years'",
        "INTERVAL '-2147483647 days'",
        "to_microseconds(9223372036854775807)",
    ),
    "ENUM": ("'a'::ENUM('a', 'b')",),
    "LIST": ("[]", "[NULL, 1]", "[[DATE 'infinity']]"),
    "ARRAY": ("[1, 2]::INTEGER[2]", "[TIMESTAMP 'infinity', NULL]::TIMESTAMP[2]"),
    "STRUCT": ("{'a': TIMESTAMP 'infinity', 'b': {'c': INTERVAL '1 month'}}",),
    "TUPLE": ("row(1, DATE '290000-01-01')",),
    "MAP": ("MAP {DATE 'infinity': 1}", "MAP {'a': TIME '24:00:00'}", "MAP {}"),
    "UNION": ("union_value(k := DATE 'infinity')", "union_value(k := 1)"),
    "VARIANT": ("'{}'::VARIANT", "[1, 2]::VARIANT"),
    "GEOMETRY": ("'POINT(0 1)'::GEOMETRY",),
    "TYPE": ("get_type(1)",),
    "NULL": ("NULL",),
}
"""Logical type ─▶ its extreme values, as SQL expressions."""

AS_TEXT = (
    "DATE '290000-01-01'",
    "DATE 'infinity'",
    "TIMESTAMP '-infinity'",
    "TIMESTAMPTZ 'infinity'",
    "TIMESTAMP_S '290000-01-01'",
    "TIME '24:00:00'",
    "TIME_NS '12:00:00.123456789'",
    "TIMETZ '12:00:00+15:59:59'",
    "INTERVAL '1000000 years'",
    "BIT '1010'",
    "union_value(k := DATE 'infinity')",
    "[[DATE 'infinity']]",
    "{'a': [TIMESTAMP 'infinity']}",
    "MAP {DATE 'infinity': 1}",
    f"'{2**128 - 1}'::UHUGEINT",
    f"'{10**60}'::BIGNUM",
)
"""SQL values that Python cannot represent."""


def result(query: str) -> Result:
    """Return the result of a query, computed in the same way as by a store."""
    with duckdb.connect(":memory:") as con:
        return result_of(con, query, None, None)


def test_each_type_is_tried() -> None:
    """Every DuckDB type has values in this file, even one that a new version adds."""
    with duckdb.connect(":memory:") as con:
        rows = con.execute("SELECT DISTINCT logical_type FROM duckdb_types()").fetchall()
    assert {kind for (kind,) in rows} <= VALUES.keys()


@pytest.mark.parametrize("value", [value for values in VALUES.values() for value in values])
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param("{}", id="alone"),
        pytest.param("[{}]", id="list"),
        pytest.param("{{'a': {}}}", id="struct"),
    ],
)
def test_each_value_is_printed_in_each_form(
    value: str, shape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows, records, frames, tables and all output formats can represent each value."""
    found = result(f"SELECT 7 AS n, {shape.format(value)} AS x UNION ALL SELECT 8, NULL")
    assert len(found.rows()) == len(found.records()) == len(found.df()) == 2
    repr(found.rows())
    repr(found.df())
    found.show()
    print_table(found, file=io.StringIO())
    assert "x" in capsys.readouterr().out
    assert "<table>" in result_markup(found)
    for name, write in WRITERS.items():
        stream = io.BytesIO()
        write(found, stream)
        assert stream.getvalue(), name
        if name == "json":
            assert [row["n"] for row in json.loads(stream.getvalue())] == [7, 8]
        elif name == "parquet":
            assert pq.read_table(io.BytesIO(stream.getvalue())).num_rows == 2
        elif name == "arrow":
            assert pa.ipc.open_file(stream.getvalue()).read_all().num_rows == 2
    assert write_sheets({"x": lambda: found}, io.BytesIO())[0].row_count == 2


@pytest.mark.parametrize("value", AS_TEXT)
def test_what_python_cannot_hold_is_text(value: str) -> None:
    """A value that Python cannot represent becomes DuckDB's string for it."""
    with duckdb.connect(":memory:") as con:
        (expected,) = con.execute(f"SELECT ({value})::VARCHAR").fetchall()[0]
    found = result(f"SELECT {value} AS x")
    assert found.rows() == [(expected,)]
    assert list(found.df()["x"]) == [expected]
    assert found.records() == [{"x": expected}]


def test_the_least_hugeint_is_text() -> None:
    """The smallest HUGEINT becomes a string: Arrow and Parquet have no 39-digit decimals."""
    found = result(f"SELECT '{-(2**127)}'::HUGEINT AS x, 10::HUGEINT AS y")
    assert found.rows() == [(str(-(2**127)), 10)]


def test_columns_of_one_name_stay_apart() -> None:
    """Columns with equal names are converted to strings independently of each other."""
    found = result("SELECT DATE 'infinity' AS a, 1 AS a, INTERVAL '1 day' AS a")
    assert found.rows() == [("infinity", 1, "1 day")]


def test_dates_that_python_holds_stay_dates() -> None:
    """Only a column with an out-of-range value becomes a string."""
    found = result("SELECT DATE '2020-01-01' AS a, DATE 'infinity' AS b, 10::HUGEINT AS c")
    assert [str(kind) for kind in found.arrow().schema.types] == ["date32[day]", "string", "int64"]
