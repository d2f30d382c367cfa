"""Query a store with SQLAlchemy and pandas: ``python sqlalchemy_client.py STORE``.

Requires ``pip install duckdb-sqlalchemy pandas``.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from sqlalchemy import create_engine, inspect

catalog = Path(sys.argv[1], "catalog.duckdb").resolve()
questions = json.loads(Path(__file__).with_name("questions.json").read_text())
engine = create_engine(f"duckdb:///{catalog}", connect_args={"read_only": True})
with engine.connect() as con:
    answers = {
        name: json.loads(pd.read_sql(query, con).to_json(orient="values"))
        for name, query in questions.items()
    }
inspector = inspect(engine)
columns = {column["name"]: column for column in inspector.get_columns("gpu_ops")}
reflected = {
    "views": sorted(inspector.get_view_names("main")),
    "comment_of_gpu_ops": inspector.get_table_comment("gpu_ops")["text"],
    "comment_of_dur": columns["dur"].get("comment"),
    "type_of_dur": str(columns["dur"]["type"]),
}
versions = ", ".join(
    f"{name} {version(name)}" for name in ("duckdb-sqlalchemy", "SQLAlchemy", "duckdb")
)
print(json.dumps({"version": versions, "answers": answers, "reflected": reflected}))
