"""Query a store with DuckDB's Python package: ``python duckdb_python.py STORE``.

Works with DuckDB 1.4 and later.
"""

import json
import sys
from pathlib import Path

import duckdb

store = Path(sys.argv[1])
questions = json.loads(Path(__file__).with_name("questions.json").read_text())
with duckdb.connect(str(store / "catalog.duckdb"), read_only=True) as con:
    answers = {name: con.sql(query).fetchall() for name, query in questions.items()}
print(json.dumps({"version": f"duckdb {duckdb.__version__}", "answers": answers}))
