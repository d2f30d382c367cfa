"""Query a store through ADBC with the driver in DuckDB's wheel: ``python adbc_client.py STORE``.

Requires ``pip install adbc-driver-manager pyarrow duckdb``.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import adbc_driver_duckdb
from adbc_driver_manager import dbapi

catalog = Path(sys.argv[1], "catalog.duckdb")
questions = json.loads(Path(__file__).with_name("questions.json").read_text())
answers = {}
options = {"path": str(catalog), "access_mode": "READ_ONLY"}
with dbapi.connect(
    driver=adbc_driver_duckdb.driver_path(), entrypoint="duckdb_adbc_init", db_kwargs=options
) as con:
    for name, query in questions.items():
        with con.cursor() as cursor:
            cursor.execute(query)
            answers[name] = [list(row.values()) for row in cursor.fetch_arrow_table().to_pylist()]
versions = ", ".join(f"{name} {version(name)}" for name in ("adbc-driver-manager", "duckdb"))
print(json.dumps({"version": versions, "answers": answers}))
